#include "rpc/internal/handler_pacer.h"

#include <chrono>

#include "gtest/gtest.h"

namespace rpc::internal {
namespace {

constexpr HandlerPacer::Clock::duration kQuick = std::chrono::microseconds(1);
constexpr HandlerPacer::Clock::duration kSlow = std::chrono::milliseconds(1);

// Calls until one is timed.
int CallsUntilTimed(HandlerPacer& pacer) {
  int calls = 1;
  while (!pacer.ShouldTime()) ++calls;
  return calls;
}

void MakeOffload(HandlerPacer& pacer) {
  while (!pacer.offload()) {
    CallsUntilTimed(pacer);
    pacer.RecordInline(kSlow);
  }
}

int QuickRunsUntilInline(HandlerPacer& pacer) {
  int runs = 0;
  while (pacer.offload()) {
    pacer.RecordOffloaded(kQuick);
    ++runs;
  }
  return runs;
}

// How many quick runs take it back.
int RelapseAndReturn(HandlerPacer& pacer) {
  MakeOffload(pacer);
  return QuickRunsUntilInline(pacer);
}

TEST(HandlerPacerTest, TimesTheFirstAndThenOneInSixteen) {
  HandlerPacer pacer;
  EXPECT_EQ(CallsUntilTimed(pacer), 1);
  pacer.RecordInline(kQuick);
  EXPECT_EQ(CallsUntilTimed(pacer), 16);
  pacer.RecordInline(kQuick);
  EXPECT_FALSE(pacer.offload());
}

TEST(HandlerPacerTest, OneSlowCallIsForgiven) {
  HandlerPacer pacer;
  CallsUntilTimed(pacer);
  pacer.RecordInline(kSlow);
  EXPECT_FALSE(pacer.offload());
  EXPECT_EQ(CallsUntilTimed(pacer), 1);  // looks at the very next
  pacer.RecordInline(kQuick);
  CallsUntilTimed(pacer);
  pacer.RecordInline(kSlow);
  EXPECT_FALSE(pacer.offload());
}

TEST(HandlerPacerTest, TwoInARowAreNot) {
  HandlerPacer pacer;
  pacer.RecordInline(kSlow);
  pacer.RecordInline(kSlow);
  EXPECT_TRUE(pacer.offload());
}

TEST(HandlerPacerTest, ComesBackLaterEachTime) {
  HandlerPacer pacer;
  for (int expected : {64, 128, 256, 512, 1024, 2048, 4096, 4096}) {
    EXPECT_EQ(RelapseAndReturn(pacer), expected);
  }
}

void RunQuickInline(HandlerPacer& pacer, int timed_runs) {
  for (int i = 0; i < timed_runs; ++i) pacer.RecordInline(kQuick);
}

TEST(HandlerPacerTest, IsForgivenByBeingQuickForLong) {
  HandlerPacer pacer;
  for (int expected : {64, 128, 256, 512}) {
    ASSERT_EQ(RelapseAndReturn(pacer), expected);
  }
  RunQuickInline(pacer, 2 * 64);  // 1024 -> 256
  EXPECT_EQ(RelapseAndReturn(pacer), 256);
  RunQuickInline(pacer, 100 * 64);  // not below what it began with
  EXPECT_EQ(RelapseAndReturn(pacer), 64);
}

TEST(HandlerPacerTest, IsNotForgivenWhereItIsSlowNowAndThen) {
  HandlerPacer pacer;
  ASSERT_EQ(RelapseAndReturn(pacer), 64);
  for (int i = 0; i < 10; ++i) {
    RunQuickInline(pacer, 63);
    pacer.RecordInline(kSlow);
  }
  RunQuickInline(pacer, 1);
  EXPECT_EQ(RelapseAndReturn(pacer), 128);
}

// What was counted inline is no part of what is counted on the executor.
TEST(HandlerPacerTest, CountsAnewOnTheExecutor) {
  HandlerPacer pacer;
  ASSERT_EQ(RelapseAndReturn(pacer), 64);
  RunQuickInline(pacer, 50);
  EXPECT_EQ(RelapseAndReturn(pacer), 128);
}

// Such as what waited for a thread when the method came back.
TEST(HandlerPacerTest, OffloadedRunsDoNotCountWhileItIsInline) {
  HandlerPacer pacer;
  ASSERT_EQ(RelapseAndReturn(pacer), 64);
  for (int i = 0; i < 1000; ++i) pacer.RecordOffloaded(kQuick);
  EXPECT_EQ(RelapseAndReturn(pacer), 128);
}

TEST(HandlerPacerTest, SlowRunStartsTheCountAgain) {
  HandlerPacer pacer;
  MakeOffload(pacer);
  for (int i = 0; i < 63; ++i) pacer.RecordOffloaded(kQuick);
  pacer.RecordOffloaded(kSlow);
  EXPECT_EQ(QuickRunsUntilInline(pacer), 64);
}

}  // namespace
}  // namespace rpc::internal
