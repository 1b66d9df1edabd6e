// Goal: a watchdog that is pushed in time does not go off, one that is not does
// once its time is over, and it says so.
#include "rdma_transport/poller_watchdog.h"

#include <poll.h>

#include <ctime>

#include "gtest/gtest.h"
#include "rdma_transport/wall_clock.h"

namespace rdma {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kTimeNs = 5 * kMs;

int64_t NowNs() { return ReadClockNs(CLOCK_MONOTONIC); }

bool GoesOffWithin(const PollerWatchdog& watchdog, int ms) {
  pollfd readable = {watchdog.fd(), POLLIN, 0};
  return poll(&readable, 1, ms) == 1;
}

class PollerWatchdogTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(watchdog_.Init().ok()); }

  PollerWatchdog watchdog_;
};

TEST_F(PollerWatchdogTest, DoesNotRunBeforeItIsPushed) {
  EXPECT_FALSE(watchdog_.IsRunning(NowNs()));
  EXPECT_FALSE(GoesOffWithin(watchdog_, 20));
}

TEST_F(PollerWatchdogTest, GoesOffOnceItsTimeIsOver) {
  const int64_t pushed_ns = NowNs();
  watchdog_.Push(pushed_ns);
  EXPECT_TRUE(watchdog_.IsRunning(pushed_ns));
  ASSERT_TRUE(GoesOffWithin(watchdog_, 10'000));
  const int64_t now_ns = NowNs();
  EXPECT_GE(now_ns - pushed_ns, kTimeNs);
  EXPECT_FALSE(watchdog_.IsRunning(now_ns));
}

// On a busy machine this thread may be away for as long as the timer takes.
TEST_F(PollerWatchdogTest, DoesNotGoOffWhilePushed) {
  for (int tries = 0; tries < 1'000; ++tries) {
    const int64_t begin_ns = NowNs();
    int64_t pushed_ns = begin_ns;
    bool in_time = true;
    while (in_time && pushed_ns - begin_ns < 4 * kTimeNs) {
      watchdog_.Push(pushed_ns);
      const bool off = GoesOffWithin(watchdog_, 0);
      const int64_t now_ns = NowNs();
      in_time = now_ns - pushed_ns < kMs;
      EXPECT_FALSE(off && in_time);
      pushed_ns = now_ns;
    }
    if (in_time) return;
  }
  FAIL() << "this thread never had a CPU for 20 ms";
}

TEST_F(PollerWatchdogTest, RunsAnewWhenPushedAfterItWentOff) {
  watchdog_.Push(NowNs());
  ASSERT_TRUE(GoesOffWithin(watchdog_, 10'000));
  const int64_t pushed_ns = NowNs();
  watchdog_.Push(pushed_ns);
  EXPECT_TRUE(watchdog_.IsRunning(pushed_ns));
  ASSERT_TRUE(GoesOffWithin(watchdog_, 10'000));
  EXPECT_GE(NowNs() - pushed_ns, kTimeNs);
}

}  // namespace
}  // namespace rdma
