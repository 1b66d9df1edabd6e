// Goal: timers never fire early, at most one tick late, once, whatever is done
// to them from inside callbacks; and whoever sleeps until NextAdvanceNs misses
// none.
// Method: single cases with a clock of our own, then random schedules beside a
// model that keeps the timers in a plain list.
#include "rdma_transport/timer_wheel.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr int64_t kTick = TimerWheel::kTickNs;

class TestTimer final : public Timer {
 public:
  int fired() const { return fired_; }
  std::function<void()> on_fire;

 private:
  void OnTimer() override {
    ++fired_;
    if (on_fire) on_fire();
  }
  int fired_ = 0;
};

TEST(TimerWheelTest, FiresAtItsTimeAndNotBefore) {
  TimerWheel wheel(0);
  TestTimer timer;
  wheel.Schedule(&timer, 5 * kTick);
  EXPECT_TRUE(timer.scheduled());
  wheel.Advance(5 * kTick - 1);
  EXPECT_EQ(timer.fired(), 0);
  wheel.Advance(5 * kTick);
  EXPECT_EQ(timer.fired(), 1);
  EXPECT_FALSE(timer.scheduled());
  wheel.Advance(500 * kTick);
  EXPECT_EQ(timer.fired(), 1);
  EXPECT_TRUE(wheel.empty());
}

TEST(TimerWheelTest, TimesBetweenTicksAreRoundedUp) {
  TimerWheel wheel(0);
  TestTimer timer;
  wheel.Schedule(&timer, 5 * kTick + 1);
  wheel.Advance(6 * kTick - 1);
  EXPECT_EQ(timer.fired(), 0);
  wheel.Advance(6 * kTick);
  EXPECT_EQ(timer.fired(), 1);
}

TEST(TimerWheelTest, ATimeInThePastFiresWithTheNextTick) {
  for (const int64_t past :
       {INT64_MIN, int64_t{-1}, int64_t{0}, 99 * kTick, 100 * kTick}) {
    TimerWheel wheel(100 * kTick);
    TestTimer timer;
    wheel.Schedule(&timer, past);
    EXPECT_EQ(wheel.NextAdvanceNs(), 101 * kTick);
    wheel.Advance(101 * kTick);
    EXPECT_EQ(timer.fired(), 1) << past;
  }
}

TEST(TimerWheelTest, WithoutTimersThereIsNothingToWaitFor) {
  TimerWheel wheel(12345);
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.NextAdvanceNs(), TimerWheel::kNever);
  wheel.Advance(int64_t{1} << 60);  // at once, however far
  EXPECT_EQ(wheel.NextAdvanceNs(), TimerWheel::kNever);
}

TEST(TimerWheelTest, SchedulingAgainMovesIt) {
  TimerWheel wheel(0);
  TestTimer timer;
  wheel.Schedule(&timer, 10 * kTick);
  wheel.Schedule(&timer, 1000 * kTick);
  wheel.Advance(999 * kTick);
  EXPECT_EQ(timer.fired(), 0);
  wheel.Schedule(&timer, 1001 * kTick);
  wheel.Advance(1001 * kTick);
  EXPECT_EQ(timer.fired(), 1);
  EXPECT_TRUE(wheel.empty());
}

TEST(TimerWheelTest, CancelledAndDestroyedTimersAreForgotten) {
  TimerWheel wheel(0);
  TestTimer timer;
  wheel.Cancel(&timer);  // never scheduled: no effect
  wheel.Schedule(&timer, 10 * kTick);
  wheel.Cancel(&timer);
  wheel.Cancel(&timer);
  EXPECT_TRUE(wheel.empty());
  {
    TestTimer gone;
    wheel.Schedule(&gone, 10 * kTick);
    EXPECT_FALSE(wheel.empty());
  }
  EXPECT_TRUE(wheel.empty());
  wheel.Advance(100 * kTick);
  EXPECT_EQ(timer.fired(), 0);
}

TEST(TimerWheelTest, OfOneTickTheyFireInTheOrderScheduled) {
  TimerWheel wheel(0);
  std::vector<int> order;
  TestTimer timers[5];
  for (int i = 0; i < 5; ++i) {
    timers[i].on_fire = [&order, i] { order.push_back(i); };
    wheel.Schedule(&timers[i], 7 * kTick);
  }
  wheel.Advance(7 * kTick);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

// ---- From inside a callback.

TEST(TimerWheelTest, ACallbackMayCancelANeighbourOfItsTick) {
  TimerWheel wheel(0);
  TestTimer first, second, third;
  for (TestTimer* timer : {&first, &second, &third}) {
    wheel.Schedule(timer, 3 * kTick);
  }
  first.on_fire = [&] {
    wheel.Cancel(&second);
    wheel.Schedule(&third, 9 * kTick);
  };
  wheel.Advance(8 * kTick);
  EXPECT_EQ(second.fired(), 0);
  EXPECT_EQ(third.fired(), 0);
  wheel.Advance(9 * kTick);
  EXPECT_EQ(third.fired(), 1);
}

TEST(TimerWheelTest, ACallbackMayScheduleItselfForThePast) {
  TimerWheel wheel(0);
  TestTimer timer;
  timer.on_fire = [&] { wheel.Schedule(&timer, 0); };
  wheel.Schedule(&timer, 0);
  wheel.Advance(10 * kTick);  // comes to an end
  EXPECT_EQ(timer.fired(), 10) << "once for each tick";
  wheel.Cancel(&timer);
}

TEST(TimerWheelTest, ACallbackMayDeleteItsTimer) {
  TimerWheel wheel(0);
  auto* const timer = new TestTimer;
  bool fired = false;
  timer->on_fire = [&fired, timer] {
    fired = true;
    auto keep = std::move(timer->on_fire);  // outlives the timer
    delete timer;
  };
  wheel.Schedule(timer, kTick);
  wheel.Advance(kTick);
  EXPECT_TRUE(fired);
  EXPECT_TRUE(wheel.empty());
}

TEST(TimerWheelTest, WhatACallbackSchedulesWithinTheAdvanceStillFires) {
  TimerWheel wheel(0);
  TestTimer first, later;
  first.on_fire = [&] { wheel.Schedule(&later, 200 * kTick); };
  wheel.Schedule(&first, kTick);
  wheel.Advance(300 * kTick);
  EXPECT_EQ(later.fired(), 1);
}

// ---- Far and near.

TEST(TimerWheelTest, EveryDistanceAroundTheLevelsEdgesIsExact) {
  // 64, 4096 and 262144 ticks are where levels change.
  for (const int64_t start : {int64_t{0}, int64_t{63}, int64_t{4095},
                              int64_t{262'143}, int64_t{1'000'003}}) {
    for (const int64_t edge : {64, 128, 4096, 8192, 262'144}) {
      for (int64_t distance = edge - 2; distance <= edge + 2; ++distance) {
        TimerWheel wheel(start * kTick);
        TestTimer timer;
        wheel.Schedule(&timer, (start + distance) * kTick);
        wheel.Advance((start + distance) * kTick - 1);
        ASSERT_EQ(timer.fired(), 0) << start << " + " << distance;
        wheel.Advance((start + distance) * kTick);
        ASSERT_EQ(timer.fired(), 1) << start << " + " << distance;
      }
    }
  }
}

TEST(TimerWheelTest, TheWheelsOwnEndIsNoEnd) {
  // The top level begins anew after 2^36 ticks.
  const int64_t start = (int64_t{1} << 36) - 100;
  TimerWheel wheel(start * kTick);
  std::vector<std::unique_ptr<TestTimer>> timers;
  for (int64_t distance = 1; distance < 5000; distance += 7) {
    timers.push_back(std::make_unique<TestTimer>());
    const int64_t due = (start + distance) * kTick;
    timers.back()->on_fire = [] {};
    wheel.Schedule(timers.back().get(), due);
  }
  for (int64_t distance = 1; distance < 5000; ++distance) {
    wheel.Advance((start + distance) * kTick);
    const auto expected = static_cast<size_t>((distance - 1) / 7 + 1);
    const auto fired = static_cast<size_t>(
        std::count_if(timers.begin(), timers.end(),
                      [](const auto& timer) { return timer->fired() == 1; }));
    ASSERT_EQ(fired, expected) << distance;
  }
}

TEST(TimerWheelTest, BeyondTheSpanItWaitsAndDoesNotFire) {
  for (const int64_t start : {int64_t{0}, int64_t{777'777}}) {
    TimerWheel wheel(start * kTick);
    TestTimer timer;
    const int64_t due = (start + (int64_t{3} << 36)) * kTick;
    wheel.Schedule(&timer, due);
    EXPECT_LE(wheel.NextAdvanceNs(), due);
    wheel.Advance((start + 1'000'000) * kTick);
    EXPECT_EQ(timer.fired(), 0);
    EXPECT_LE(wheel.NextAdvanceNs(), due);
    wheel.Schedule(&timer, INT64_MAX);
    EXPECT_FALSE(wheel.empty());
    wheel.Cancel(&timer);
    EXPECT_TRUE(wheel.empty());
  }
}

TEST(TimerWheelTest, WhoSleepsUntilNextAdvanceWakesFewTimesAndMissesNothing) {
  for (const int64_t distance :
       {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{100}, int64_t{5000},
        int64_t{300'000}, int64_t{20'000'000}}) {
    const int64_t start = 12'345;
    TimerWheel wheel(start * kTick);
    TestTimer timer;
    const int64_t due = (start + distance) * kTick;
    wheel.Schedule(&timer, due);
    int wakes = 0;
    int64_t now = start * kTick;
    while (timer.fired() == 0) {
      const int64_t next = wheel.NextAdvanceNs();
      ASSERT_GT(next, now);
      ASSERT_LE(next, due);
      now = next;
      wheel.Advance(now);
      ASSERT_LE(++wakes, 6) << "one for each level is enough";
    }
    EXPECT_EQ(now, due);
  }
}

// ---- Beside a model.

class ModelTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  struct Entry {
    TestTimer timer;
    int64_t due_tick = 0;  // the first tick at which it may and must fire
    bool scheduled = false;
  };

  ModelTest() : entries_(200) {
    for (Entry& entry : entries_) {
      entry.timer.on_fire = [this, &entry] { OnFire(entry); };
    }
  }
  ~ModelTest() override {
    for (Entry& entry : entries_) wheel_.Cancel(&entry.timer);
  }

  int64_t RandomDistanceNs() {
    return static_cast<int64_t>(random_() >> (24 + random_() % 40));
  }
  Entry& RandomEntry() { return entries_[random_() % entries_.size()]; }

  void Schedule(Entry& entry) {
    const int64_t time_ns =
        now_ns_ + RandomDistanceNs() - (random_() % 8 == 0 ? 5 * kTick : 0);
    // Within an Advance the wheel is at the tick that fires.
    const int64_t tick = advancing_ ? firing_tick_ : now_ns_ / kTick;
    entry.due_tick = std::max((time_ns + kTick - 1) / kTick, tick + 1);
    entry.scheduled = true;
    wheel_.Schedule(&entry.timer, time_ns);
  }
  void Cancel(Entry& entry) {
    entry.scheduled = false;
    wheel_.Cancel(&entry.timer);
  }

  void OnFire(Entry& entry) {
    ASSERT_TRUE(advancing_);
    ASSERT_TRUE(entry.scheduled);
    ASSERT_GE(entry.due_tick, firing_tick_) << "out of order";
    ASSERT_LE(entry.due_tick * kTick, now_ns_) << "early";
    firing_tick_ = entry.due_tick;
    entry.scheduled = false;
    switch (random_() % 4) {
      case 0:
        return Schedule(entry);
      case 1:
        return Schedule(RandomEntry());
      case 2:
        return Cancel(RandomEntry());
      default:
        return;
    }
  }

  void Advance(int64_t to_ns) {
    firing_tick_ = now_ns_ / kTick;
    now_ns_ = to_ns;
    advancing_ = true;
    wheel_.Advance(now_ns_);
    advancing_ = false;
  }

  void CheckAgainstModel() {
    int64_t earliest = INT64_MAX;
    bool any = false;
    for (const Entry& entry : entries_) {
      ASSERT_EQ(entry.scheduled, entry.timer.scheduled());
      if (!entry.scheduled) continue;
      any = true;
      ASSERT_GT(entry.due_tick, now_ns_ / kTick) << "late";
      earliest = std::min(earliest, entry.due_tick * kTick);
    }
    ASSERT_EQ(wheel_.empty(), !any);
    ASSERT_LE(wheel_.NextAdvanceNs(), any ? earliest : TimerWheel::kNever);
    ASSERT_GT(wheel_.NextAdvanceNs(), now_ns_);
  }

  std::mt19937_64 random_{GetParam()};
  int64_t now_ns_ = static_cast<int64_t>(random_() >> 20);
  TimerWheel wheel_{now_ns_};
  std::vector<Entry> entries_;
  bool advancing_ = false;
  int64_t firing_tick_ = 0;
};

TEST_P(ModelTest, AgreesUnderRandomSchedules) {
  for (int step = 0; step < 5000; ++step) {
    switch (random_() % 5) {
      case 0:
      case 1:
        Schedule(RandomEntry());
        break;
      case 2:
        Cancel(RandomEntry());
        break;
      case 3:
        Advance(now_ns_ + static_cast<int64_t>(random_() % (20 * kTick)));
        break;
      default: {
        const int64_t next = wheel_.NextAdvanceNs();
        // Not further than a test may take: it goes tick by tick.
        Advance(std::min(next, now_ns_ + 20'000 * kTick));
      }
    }
    ASSERT_NO_FATAL_FAILURE(CheckAgainstModel()) << "step " << step;
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace rdma
