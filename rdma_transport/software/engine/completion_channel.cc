#include "rdma_transport/software/engine/completion_channel.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "rdma_transport/software/engine/completion_queue.h"

namespace rdma::soft {
namespace {

constexpr int kMaxDescriptorsPerTurn = 64;

bool WatchForReading(int epoll_fd, int fd, void* tag) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.ptr = tag;
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

std::unique_ptr<CompletionChannel> CompletionChannel::Create(
    ibv_context* context, Clock* clock) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd counter(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll || !counter || !timer) return nullptr;
  std::unique_ptr<CompletionChannel> channel(new CompletionChannel(
      context, clock, std::move(epoll), std::move(counter), std::move(timer)));
  if (!WatchForReading(channel->fd, channel->counter_.get(), nullptr) ||
      !WatchForReading(channel->fd, channel->timer_.get(), channel.get())) {
    return nullptr;
  }
  return channel;
}

CompletionChannel::CompletionChannel(ibv_context* context, Clock* clock,
                                     UniqueFd epoll, UniqueFd counter,
                                     UniqueFd timer)
    : ibv_comp_channel{},
      clock_(clock),
      epoll_(std::move(epoll)),
      counter_(std::move(counter)),
      timer_(std::move(timer)) {
  this->context = context;
  fd = epoll_.get();
}

void CompletionChannel::Add(CompletionQueue* cq) {
  cqs_.push_back(cq);
  ++refcnt;
}

void CompletionChannel::Remove(CompletionQueue* cq) {
  cqs_.erase(std::find(cqs_.begin(), cqs_.end(), cq));
  pending_.erase(std::remove(pending_.begin(), pending_.end(), cq),
                 pending_.end());
  --refcnt;
  ClearCounterIfIdle();
}

bool CompletionChannel::Watch(int link_fd, PollTarget* target) {
  return WatchForReading(fd, link_fd, target);
}

void CompletionChannel::Unwatch(int link_fd) {
  epoll_ctl(fd, EPOLL_CTL_DEL, link_fd, nullptr);
}

CompletionQueue* CompletionChannel::GetEvent() {
  ServeDescriptors();
  // A turn looks at those that are busy, however many others there are.
  for (CompletionQueue* cq : cqs_) {
    if (cq->busy() && cq->armed()) cq->ProgressSome();
  }
  CompletionQueue* cq = nullptr;
  if (!pending_.empty()) {
    cq = pending_.front();
    pending_.pop_front();
    cq->CountEvent();
  }
  ClearCounterIfIdle();
  if (cq == nullptr) errno = EAGAIN;
  return cq;
}

void CompletionChannel::ServeDescriptors() {
  epoll_event events[kMaxDescriptorsPerTurn];
  const int count = epoll_wait(fd, events, kMaxDescriptorsPerTurn, 0);
  for (int i = 0; i < count; ++i) {
    void* const tag = events[i].data.ptr;
    if (tag == nullptr) continue;  // our own counter
    if (tag == this) {
      uint64_t expirations;
      if (read(timer_.get(), &expirations, sizeof(expirations)) < 0) continue;
      wake_at_ns_ = 0;
      ProgressAll();
      continue;
    }
    static_cast<PollTarget*>(tag)->ServiceLink();
  }
}

void CompletionChannel::ProgressAll() {
  for (CompletionQueue* cq : cqs_) cq->ProgressAll();
}

void CompletionChannel::Post(CompletionQueue* cq) {
  pending_.push_back(cq);
  Kick();
}

void CompletionChannel::Kick() {
  if (counter_set_) return;
  counter_set_ = true;
  eventfd_write(counter_.get(), 1);
}

bool CompletionChannel::AnyBusy() const {
  return std::any_of(cqs_.begin(), cqs_.end(), [](const CompletionQueue* cq) {
    return cq->busy() && cq->armed();
  });
}

void CompletionChannel::ClearCounterIfIdle() {
  if (!counter_set_ || !pending_.empty() || AnyBusy()) return;
  eventfd_t value;
  eventfd_read(counter_.get(), &value);
  counter_set_ = false;
}

void CompletionChannel::WakeAt(int64_t deadline_ns) {
  if (wake_at_ns_ != 0 && wake_at_ns_ <= deadline_ns) return;
  wake_at_ns_ = deadline_ns;
  // Relative, because the clock need not be the kernel's; and never 0, which
  // would stop the timer.
  const int64_t wait_ns =
      std::max<int64_t>(deadline_ns - clock_->NowNanoseconds(), 1);
  itimerspec when = {};
  when.it_value.tv_sec = wait_ns / 1'000'000'000;
  when.it_value.tv_nsec = wait_ns % 1'000'000'000;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace rdma::soft
