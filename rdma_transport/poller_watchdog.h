// A poller's timer, which its driver pushes ahead of itself: as long as it
// does, the monitor sleeps, and takes the CPU from nobody. It goes off where
// the driver left, runs a callback that blocks, or sleeps.
//
// Thread-safe, but for Init.
// Source: timerfd_create(2).
#ifndef VERBENA_RDMA_TRANSPORT_POLLER_WATCHDOG_H_
#define VERBENA_RDMA_TRANSPORT_POLLER_WATCHDOG_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

class PollerWatchdog {
 public:
  // RESOURCE_EXHAUSTED: no more descriptors.
  absl::Status Init();

  // Somebody looks after the poller, or is about to, at this time
  // (CLOCK_MONOTONIC). A system call where the last push was some time ago, at
  // most 400 a second; else a load. Afterwards the timer runs in any case.
  void Push(int64_t now_ns) {
    if (now_ns - pushed_ns_.load(std::memory_order_relaxed) >= kPushNs)
        [[unlikely]]
      StartTimer(now_ns);
  }

  // Whether the timer has yet to go off.
  bool IsRunning(int64_t now_ns) const {
    return now_ns - pushed_ns_.load(std::memory_order_relaxed) < kTimeNs;
  }

  // Readable from when the timer goes off until it is pushed again.
  int fd() const { return fd_.get(); }

 private:
  static constexpr int64_t kTimeNs = 5'000'000;
  static constexpr int64_t kPushNs = kTimeNs / 2;

  void StartTimer(int64_t now_ns);

  UniqueFd fd_;
  std::atomic<int64_t> pushed_ns_{INT64_MIN / 2};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_POLLER_WATCHDOG_H_
