#include "rdma_transport/software/engine/async_events.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rdma::soft {
namespace {

// The element's pointers share their place in the union.
void* ObjectOf(const ibv_async_event& event) { return event.element.qp; }

}  // namespace

absl::StatusOr<std::unique_ptr<AsyncEvents>> AsyncEvents::Create() {
  // A semaphore: the counter is the number of pending events.
  UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
  if (!fd) {
    return absl::ResourceExhaustedError(
        absl::StrCat("eventfd: ", std::strerror(errno)));
  }
  return std::unique_ptr<AsyncEvents>(new AsyncEvents(std::move(fd)));
}

void AsyncEvents::Raise(ibv_event_type type, void* object) {
  ibv_async_event event = {};
  event.element.qp = static_cast<ibv_qp*>(object);
  event.event_type = type;
  std::lock_guard lock(mutex_);
  pending_.push_back(event);
  eventfd_write(fd_.get(), 1);
}

int AsyncEvents::Get(ibv_async_event* event) {
  std::lock_guard lock(mutex_);
  if (pending_.empty()) {
    errno = EAGAIN;
    return -1;
  }
  *event = pending_.front();
  pending_.pop_front();
  eventfd_t one;
  eventfd_read(fd_.get(), &one);
  ++unacked_[ObjectOf(*event)];
  return 0;
}

void AsyncEvents::Ack(const ibv_async_event& event) {
  std::lock_guard lock(mutex_);
  const auto found = unacked_.find(ObjectOf(event));
  if (found == unacked_.end()) return;
  if (--found->second == 0) unacked_.erase(found);
  acknowledged_.notify_all();
}

void AsyncEvents::Forget(void* object) {
  std::unique_lock lock(mutex_);
  const auto dropped = std::remove_if(pending_.begin(), pending_.end(),
                                      [object](const ibv_async_event& event) {
                                        return ObjectOf(event) == object;
                                      });
  for (auto it = dropped; it != pending_.end(); ++it) {
    eventfd_t one;
    eventfd_read(fd_.get(), &one);
  }
  pending_.erase(dropped, pending_.end());
  acknowledged_.wait(lock, [&] { return !unacked_.contains(object); });
}

}  // namespace rdma::soft
