// Goal: the wall clock's time by the steady one's, with few readings, right
// again soon after somebody has set it; and what is left until any deadline.
// Method: two clocks of the test's own, of which readings are counted.
#include "rdma_transport/wall_clock.h"

#include <cstdint>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// What the clocks say, how long it takes to read one, and how often it was
// done.
int64_t steady_ns;
int64_t between_ns;
int64_t reading_ns;
int readings;
int held_up_readings;  // so many of the next ones take long

int64_t Read(clockid_t clock) {
  ++readings;
  steady_ns += held_up_readings-- > 0 ? 20 * kMillisecond : reading_ns;
  return clock == CLOCK_REALTIME ? steady_ns + between_ns : steady_ns;
}

class WallClockTest : public ::testing::Test {
 protected:
  WallClockTest() {
    steady_ns = 5'000 * kMillisecond;
    between_ns = 1'700'000'000'000 * kMillisecond;
    reading_ns = 20;
    readings = 0;
    held_up_readings = 0;
  }
  // How far it is behind the true time.
  int64_t BehindNs() {
    const int64_t asked_at_ns = steady_ns;
    return asked_at_ns + between_ns - clock_.UnixNs(asked_at_ns);
  }

  WallClock clock_{Read};
};

TEST_F(WallClockTest, IsNeverAheadAndBehindByAReading) {
  for (int i = 0; i < 1000; ++i) {
    const int64_t behind_ns = BehindNs();
    EXPECT_GE(behind_ns, 0);
    EXPECT_LE(behind_ns, reading_ns);
    steady_ns += 10'000;
  }
}

TEST_F(WallClockTest, IsReadOnceAMillisecond) {
  for (int i = 0; i < 1000; ++i) {
    BehindNs();
    steady_ns += 10'000;
  }
  EXPECT_LE(readings, 3 * 11);
  EXPECT_GE(readings, 3 * 9);
}

TEST_F(WallClockTest, SeesThatItWasSetWithinAMillisecond) {
  BehindNs();
  for (const int64_t step_ns : {3600'000 * kMillisecond, -60 * kMillisecond}) {
    between_ns += step_ns;
    steady_ns += kMillisecond + 1;
    EXPECT_GE(BehindNs(), 0);
    EXPECT_LE(BehindNs(), reading_ns);
  }
}

TEST_F(WallClockTest, AHeldUpReadingIsTakenAgain) {
  held_up_readings = 2;
  EXPECT_LE(BehindNs(), reading_ns);
  // Where that happens time and again, the next one who asks reads once more.
  steady_ns += kMillisecond + 1;
  held_up_readings = 1000;
  BehindNs();
  held_up_readings = 0;
  EXPECT_LE(BehindNs(), reading_ns);
}

TEST(NsUntilTest, IsWhatIsLeft) {
  const int64_t left_ns = NsUntil(absl::Now() + absl::Seconds(10));
  EXPECT_LE(left_ns, 10'000 * kMillisecond);
  EXPECT_GT(left_ns, 5'000 * kMillisecond);
}

TEST(NsUntilTest, OfThePastIsNothing) {
  EXPECT_EQ(NsUntil(absl::Now() - absl::Nanoseconds(1)), 0);
  EXPECT_EQ(NsUntil(absl::UnixEpoch()), 0);
  EXPECT_EQ(NsUntil(absl::InfinitePast()), 0);
}

TEST(NsUntilTest, OfTheFarthestFutureIsMuch) {
  constexpr int64_t kCentury =
      int64_t{36500} * 24 * 3600 * 1'000 * kMillisecond;
  EXPECT_GT(NsUntil(absl::Now() + absl::Hours(24 * 365 * 10'000)), kCentury);
}

}  // namespace
}  // namespace rdma
