#include "rdma_transport/hardware/deadlines.h"

#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "absl/memory/memory.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

int64_t NowNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Deadlines>> Deadlines::Create() {
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return VerbsError("timerfd_create", errno);
  return absl::WrapUnique(new Deadlines(std::move(timer)));
}

void Deadlines::Set(CmId* id, absl::Duration timeout) {
  Clear(id);
  if (timeout == absl::InfiniteDuration()) return;
  // Bounded, so that the sum cannot overflow.
  const int64_t timeout_ns =
      absl::ToInt64Nanoseconds(std::min(timeout, absl::Hours(24 * 365)));
  const int64_t time_ns = NowNanoseconds() + std::max<int64_t>(timeout_ns, 0);
  by_time_ns_.emplace(time_ns, id);
  time_ns_[id] = time_ns;
  if (by_time_ns_.begin()->second == id) Arm();
}

void Deadlines::Clear(CmId* id) {
  const auto found = time_ns_.find(id);
  if (found == time_ns_.end()) return;
  const bool was_first = by_time_ns_.begin()->second == id;
  by_time_ns_.erase({found->second, id});
  time_ns_.erase(found);
  if (was_first) Arm();
}

absl::Duration Deadlines::Remaining(CmId* id) const {
  const auto found = time_ns_.find(id);
  if (found == time_ns_.end()) return absl::InfiniteDuration();
  return absl::Nanoseconds(
      std::max<int64_t>(found->second - NowNanoseconds(), 0));
}

CmId* Deadlines::TakeExpired() {
  if (by_time_ns_.empty()) return nullptr;
  const auto [time_ns, id] = *by_time_ns_.begin();
  if (time_ns > NowNanoseconds()) return nullptr;
  Clear(id);
  return id;
}

// Setting a timer also takes back that it has expired.
void Deadlines::Arm() {
  itimerspec when = {};
  if (!by_time_ns_.empty()) {
    const int64_t time_ns = by_time_ns_.begin()->first;
    when.it_value.tv_sec = time_ns / 1'000'000'000;
    when.it_value.tv_nsec = time_ns % 1'000'000'000;
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace rdma
