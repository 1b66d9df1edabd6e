#include "rdma_transport/idle_spin.h"

#include <algorithm>

namespace rdma {

IdleSpin::IdleSpin(absl::Duration shortest, absl::Duration longest)
    : shortest_ns_(absl::ToInt64Nanoseconds(shortest)),
      usual_longest_ns_(absl::ToInt64Nanoseconds(longest)),
      longest_ns_(usual_longest_ns_),
      limit_ns_(shortest_ns_) {}

void IdleSpin::OnFound(int64_t idle_ns) {
  if (is_trying_) return Judge(idle_ns);
  late_ = 0;
  if (idle_ns > usual_longest_ns_ && ++uses_ == kUsesToRenew) BeUsual();
}

void IdleSpin::OnWoken(int64_t idle_ns) {
  if (shortest_ns_ == usual_longest_ns_) return;
  if (is_trying_) return Judge(idle_ns);
  if (idle_ns <= longest_ns_) {
    late_ = 0;
    limit_ns_ = std::min(limit_ns_ * 2, longest_ns_);
    return CountNoSleeps();
  }
  if (longest_ns_ > usual_longest_ns_) {
    if (++late_ > kForgiven) BeUsual();
    return;
  }
  limit_ns_ = std::max(limit_ns_ / 2, shortest_ns_);
  if (idle_ns > kNear * usual_longest_ns_) return;
  slept_ns_ += idle_ns;
  if (++sleeps_ >= sleeps_to_try_) StartTry();
}

void IdleSpin::StartTry() {
  is_trying_ = true;
  sleep_ns_ = slept_ns_ / sleeps_;
  sooner_ns_ = as_late_ns_ = 0;
  limit_ns_ = std::min(2 * sleep_ns_, kNear * usual_longest_ns_);
}

void IdleSpin::Judge(int64_t idle_ns) {
  const bool is_sooner = idle_ns <= sleep_ns_ / 4 * 3;
  (is_sooner ? sooner_ns_ : as_late_ns_) += std::min(idle_ns, sleep_ns_);
  if (sooner_ns_ + as_late_ns_ < kTrySleeps * sleep_ns_) return;
  EndTry(sooner_ns_ > as_late_ns_);
}

void IdleSpin::EndTry(bool was_worth_it) {
  BeUsual();
  if (was_worth_it) {
    longest_ns_ = limit_ns_ = sleep_ns_;
    sleeps_to_try_ = kSleepsToTry;
  } else {
    sleeps_to_try_ = std::min(2 * sleeps_to_try_, kMostSleepsToTry);
  }
}

void IdleSpin::BeUsual() {
  is_trying_ = false;
  longest_ns_ = usual_longest_ns_;
  limit_ns_ = shortest_ns_;
  late_ = uses_ = 0;
  CountNoSleeps();
}

void IdleSpin::CountNoSleeps() {
  sleeps_ = 0;
  slept_ns_ = 0;
}

}  // namespace rdma
