#include "tests/warm_call/stopped_clock.h"

#include <time.h>

#include <atomic>
#include <chrono>

namespace {

std::atomic<bool> stopped = false;
timespec realtime;
timespec monotonic;

}  // namespace

// The linker's --wrap makes these names (BUILD.bazel).
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_clock_gettime(clockid_t clock, timespec* now);
int __wrap_clock_gettime(clockid_t clock, timespec* now) {
  if (!stopped.load(std::memory_order_relaxed)) {
    return __real_clock_gettime(clock, now);
  }
  *now = clock == CLOCK_REALTIME ? realtime : monotonic;
  return 0;
}

std::chrono::steady_clock::time_point
__wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  timespec now;
  __wrap_clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::steady_clock::time_point(
      std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

namespace warm_call {

void StopClock() {
  clock_gettime(CLOCK_REALTIME, &realtime);
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  stopped = true;
}

void StartClock() { stopped = false; }

}  // namespace warm_call
