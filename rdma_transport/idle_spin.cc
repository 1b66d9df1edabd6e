#include "rdma_transport/idle_spin.h"

#include <algorithm>

namespace rdma {

IdleSpin::IdleSpin(absl::Duration shortest, absl::Duration longest)
    : shortest_ns_(absl::ToInt64Nanoseconds(shortest)),
      usual_longest_ns_(absl::ToInt64Nanoseconds(longest)),
      longest_ns_(usual_longest_ns_),
      limit_ns_(shortest_ns_) {}

void IdleSpin::OnFound(int64_t idle_ns) {
  // The peer needs some of the tries to do without sleeping, too.
  if (2 * idle_ns <= sleep_ns_) ++quick_tries_;
  if (--tries_left_ == 0) EndTries();
}

void IdleSpin::OnWoken(int64_t idle_ns) {
  if (shortest_ns_ == usual_longest_ns_) return;
  if (is_trying()) return OnFound(idle_ns);
  if (idle_ns <= longest_ns_) {
    late_ = 0;
    limit_ns_ = std::min(limit_ns_ * 2, longest_ns_);
    return CountNoSleeps();
  }
  if (++late_ > kForgiven) limit_ns_ = std::max(limit_ns_ / 2, shortest_ns_);
  if (idle_ns > kNear * usual_longest_ns_) {
    longest_ns_ = usual_longest_ns_;
    limit_ns_ = std::min(limit_ns_, longest_ns_);
    return CountNoSleeps();
  }
  slept_ns_ += idle_ns;
  if (++sleeps_ == sleeps_to_try_) StartTries();
}

void IdleSpin::StartTries() {
  sleep_ns_ = slept_ns_ / sleeps_;
  limit_ns_ = 2 * sleep_ns_;
  tries_left_ = kTries;
  quick_tries_ = 0;
  CountNoSleeps();
}

void IdleSpin::EndTries() {
  late_ = 0;
  if (quick_tries_ >= kTries / 2) {
    longest_ns_ = std::max(sleep_ns_, usual_longest_ns_);
    limit_ns_ = longest_ns_;
    sleeps_to_try_ = kSleepsToTry;
  } else {
    longest_ns_ = usual_longest_ns_;
    limit_ns_ = shortest_ns_;
    sleeps_to_try_ = std::min(2 * sleeps_to_try_, kMostSleepsToTry);
  }
}

void IdleSpin::CountNoSleeps() {
  sleeps_ = 0;
  slept_ns_ = 0;
}

}  // namespace rdma
