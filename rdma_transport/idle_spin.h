// How long a driver that finds nothing to do polls on before it sleeps.
//
// Sleeping costs the time to wake: microseconds on a bare machine, a fifth of a
// millisecond in some virtual ones. Two peers can keep each other in it, each
// asleep by the time that the other one is awake and has answered, although
// without sleeping their messages would come within the spin. So the limit
// grows while work comes soon after sleep began, as far as the longest spin,
// and shrinks again once it comes later than any spin would last: who has
// nothing to do burns no CPU. Linux's haltpoll governor of idle CPUs goes by
// the same rule.
//
//   IdleSpin spin(absl::Microseconds(50), absl::Microseconds(400));
//   if (idle_ns < spin.limit_ns()) continue;  // poll again
//   Sleep();
//   spin.OnWoken(time_without_work_ns);
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_IDLE_SPIN_H_
#define VERBENA_RDMA_TRANSPORT_IDLE_SPIN_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace rdma {

class IdleSpin {
 public:
  // The limit is `shortest` to begin with. REQUIRES: shortest <= longest.
  IdleSpin(absl::Duration shortest, absl::Duration longest)
      : shortest_ns_(absl::ToInt64Nanoseconds(shortest)),
        longest_ns_(absl::ToInt64Nanoseconds(longest)),
        limit_ns_(shortest_ns_) {}

  int64_t limit_ns() const { return limit_ns_; }

  // A driver that had slept was woken, so long after it had run out of work.
  void OnWoken(int64_t idle_ns) {
    limit_ns_ = idle_ns <= longest_ns_ ? std::min(limit_ns_ * 2, longest_ns_)
                                       : std::max(limit_ns_ / 2, shortest_ns_);
  }

 private:
  const int64_t shortest_ns_;
  const int64_t longest_ns_;
  int64_t limit_ns_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_IDLE_SPIN_H_
