#include "rdma_transport/poller_watchdog.h"

#include <sys/timerfd.h>

#include <cerrno>

#include "absl/base/attributes.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {

absl::Status PollerWatchdog::Init() {
  fd_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  return fd_ ? absl::OkStatus() : VerbsError("timerfd_create", errno);
}

// Two threads may do this at once: either time will do.
ABSL_ATTRIBUTE_NOINLINE void PollerWatchdog::StartTimer(int64_t now_ns) {
  itimerspec time = {};
  time.it_value.tv_nsec = kTimeNs;
  timerfd_settime(fd_.get(), 0, &time,
                  nullptr);  // fails for wrong arguments only
  pushed_ns_.store(now_ns, std::memory_order_relaxed);
}

}  // namespace rdma
