// Goal: wherever a point in time is taken, it may be any of the types that
// gRPC C++ takes, and one of the user's own.
// Method: gRPC's gpr_timespec is played by a type of the same members.
#include "rpc/time.h"

#include <chrono>
#include <cstdint>
#include <limits>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"

struct Timespec {
  int64_t tv_sec;
  int32_t tv_nsec;
  int clock_type;  // monotonic, realtime, precise, a span
};

struct Tick {
  int seconds_since_2000;
};

template <>
class rpc::TimePoint<Tick> {
 public:
  TimePoint(const Tick& tick)
      : time_(absl::FromUnixSeconds(946684800 + tick.seconds_since_2000)) {}
  absl::Time raw_time() const { return time_; }

 private:
  absl::Time time_;
};

namespace rpc {
namespace {

template <class T>
absl::Time DeadlineOf(const T& time) {
  ClientContext context;
  context.set_deadline(time);
  return context.raw_deadline();
}

void ExpectNear(absl::Time time, absl::Time other) {
  EXPECT_LT(absl::AbsDuration(time - other), absl::Seconds(1))
      << time << " " << other;
}

TEST(TimePointTest, OfWhatIsKnown) {
  const absl::Time now = absl::Now();
  EXPECT_EQ(TimePoint<absl::Time>(now).raw_time(), now);
  const auto clock = std::chrono::system_clock::now();
  EXPECT_EQ(TimePoint<std::chrono::system_clock::time_point>(clock).raw_time(),
            absl::FromChrono(clock));
}

TEST(TimePointTest, OfGrpcsTimespec) {
  const absl::Time now = absl::Now();
  const int64_t uptime =
      std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count();
  const int64_t unix = absl::ToUnixSeconds(now);
  EXPECT_EQ(DeadlineOf(Timespec{unix, 5, 1}),
            absl::FromUnixSeconds(unix) + absl::Nanoseconds(5));
  const auto in_ten = absl::Seconds(10);
  ExpectNear(DeadlineOf(Timespec{uptime + 10, 500'000'000, 0}), now + in_ten);
  ExpectNear(DeadlineOf(Timespec{10, 0, 3}), now + in_ten);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const int clock : {0, 1, 2, 3}) {
    EXPECT_EQ(DeadlineOf(Timespec{kMax, 0, clock}), absl::InfiniteFuture());
    EXPECT_EQ(DeadlineOf(Timespec{-kMax - 1, 0, clock}), absl::InfinitePast());
  }
}

TEST(TimePointTest, OfATypeOfTheUsers) {
  EXPECT_EQ(DeadlineOf(Tick{86400}),
            absl::FromCivil(absl::CivilDay(2000, 1, 2), absl::UTCTimeZone()));
  CompletionQueue queue;
  void* tag;
  bool ok;
  EXPECT_EQ(queue.AsyncNext(&tag, &ok, Tick{0}), CompletionQueue::TIMEOUT);
}

TEST(VersionTest, IsVerbenas) { EXPECT_FALSE(Version().empty()); }

}  // namespace
}  // namespace rpc
