// Points in time as users give them, as absl::Time.
#ifndef VERBENA_RPC_INTERNAL_DEADLINE_H_
#define VERBENA_RPC_INTERNAL_DEADLINE_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace rpc::internal {

inline absl::Time ToTime(absl::Time time) { return time; }

// The clock's last moment means "never", as users of gRPC write it.
template <class Duration>
absl::Time ToTime(
    std::chrono::time_point<std::chrono::system_clock, Duration> time) {
  if (time == decltype(time)::max()) return absl::InfiniteFuture();
  return absl::FromUnixNanos(0) + absl::FromChrono(time.time_since_epoch());
}

template <class Duration>
absl::Time ToTime(
    std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
  if (time == decltype(time)::max()) return absl::InfiniteFuture();
  return absl::Now() +
         absl::FromChrono(time - std::chrono::steady_clock::now());
}

// The other way; never becomes the clock's last moment.
inline std::chrono::system_clock::time_point ToSystemClock(absl::Time time) {
  using Clock = std::chrono::system_clock;
  if (time >= absl::FromChrono(Clock::time_point::max())) {
    return Clock::time_point::max();
  }
  return absl::ToChronoTime(time);
}

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_DEADLINE_H_
