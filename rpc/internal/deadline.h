// Points in time as users give them, as absl::Time.
#ifndef VERBENA_RPC_INTERNAL_DEADLINE_H_
#define VERBENA_RPC_INTERNAL_DEADLINE_H_

#include <chrono>
#include <limits>
#include <type_traits>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace rpc {

template <typename T>
class TimePoint;  // time.h

namespace internal {

inline absl::Time ToTime(absl::Time time) { return time; }

// The clock's last moment means "never", as users of gRPC write it.
template <class Duration>
absl::Time ToTime(
    std::chrono::time_point<std::chrono::system_clock, Duration> time) {
  if (time == decltype(time)::max()) return absl::InfiniteFuture();
  if constexpr (std::is_same_v<Duration, std::chrono::nanoseconds>) {
    return absl::FromUnixNanos(time.time_since_epoch().count());
  }
  return absl::FromUnixNanos(0) + absl::FromChrono(time.time_since_epoch());
}

template <class Duration>
absl::Time ToTime(
    std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
  if (time == decltype(time)::max()) return absl::InfiniteFuture();
  return absl::Now() +
         absl::FromChrono(time - std::chrono::steady_clock::now());
}

// gRPC's gpr_timespec, where its C headers are.
template <class T>
concept GprTimespec = requires(const T& time) {
  time.tv_sec;
  time.tv_nsec;
  time.clock_type;
};

template <GprTimespec T>
absl::Time ToTime(const T& time) {
  enum { kMonotonic, kRealtime, kPrecise, kTimespan };  // gpr_clock_type
  using Seconds = decltype(time.tv_sec);
  if (time.tv_sec == std::numeric_limits<Seconds>::max()) {
    return absl::InfiniteFuture();
  }
  if (time.tv_sec == std::numeric_limits<Seconds>::min()) {
    return absl::InfinitePast();
  }
  const absl::Duration since =
      absl::Seconds(time.tv_sec) + absl::Nanoseconds(time.tv_nsec);
  const int clock = static_cast<int>(time.clock_type);
  if (clock == kRealtime) return absl::UnixEpoch() + since;
  if (clock == kTimespan) return absl::Now() + since;
  return absl::Now() + since -
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

template <class T>
concept KnownTime = requires(const T& time) {
  ToTime(time);
};

// A type that a user has written a TimePoint for.
template <class T>
requires(!KnownTime<T>) absl::Time ToTime(const T& time) {
  return ToTime(TimePoint<T>(time).raw_time());
}

// The other way; never becomes the clock's last moment.
inline std::chrono::system_clock::time_point ToSystemClock(absl::Time time) {
  using Clock = std::chrono::system_clock;
  if (time >= absl::FromChrono(Clock::time_point::max())) {
    return Clock::time_point::max();
  }
  return absl::ToChronoTime(time);
}

}  // namespace internal
}  // namespace rpc

#endif  // VERBENA_RPC_INTERNAL_DEADLINE_H_
