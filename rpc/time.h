// What a point in time may be, wherever one is taken (deadlines, AsyncNext,
// alarms): absl::Time, a time point of std::chrono's system or steady clock,
// gRPC's gpr_timespec where its C headers are, and types of users:
//
//   template <>
//   class rpc::TimePoint<Tick> {
//    public:
//     TimePoint(const Tick& tick) : time_(...) {}
//     absl::Time raw_time() const { return time_; }  // or gpr_timespec
//     ...
//   };
//
// The last moment of a clock means "never".
//
// Thread rule: a value type.
#ifndef VERBENA_RPC_TIME_H_
#define VERBENA_RPC_TIME_H_

#include "absl/time/time.h"
#include "rpc/internal/deadline.h"

namespace rpc {

// A type that is none of those above: specialize this for it.
template <typename T>
class TimePoint {
 public:
  TimePoint(const T& time) = delete;
  absl::Time raw_time() const = delete;
};

template <internal::KnownTime T>
class TimePoint<T> {
 public:
  TimePoint(const T& time) : time_(internal::ToTime(time)) {}  // NOLINT
  absl::Time raw_time() const { return time_; }

 private:
  absl::Time time_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_TIME_H_
