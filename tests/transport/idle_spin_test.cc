// Goal: the spin is longer where that spares sleeping, and only there.
// Method: what a driver would say of its sleeps, with times of the test's own.
#include "rdma_transport/idle_spin.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr int64_t kShortestNs = 50'000;
constexpr int64_t kLongestNs = 400'000;

class IdleSpinTest : public ::testing::Test {
 protected:
  void Wake(int times, int64_t idle_ns) {
    for (int i = 0; i < times; ++i) spin_.OnWoken(idle_ns);
  }

  IdleSpin spin_{absl::Nanoseconds(kShortestNs), absl::Nanoseconds(kLongestNs)};
};

TEST_F(IdleSpinTest, BeginsShort) { EXPECT_EQ(spin_.limit_ns(), kShortestNs); }

TEST_F(IdleSpinTest, OutlastsWorkThatComesSoonAfterSleepBegan) {
  constexpr int64_t kIdleNs = 190'000;
  Wake(2, kIdleNs);
  EXPECT_GT(spin_.limit_ns(), kIdleNs);
}

TEST_F(IdleSpinTest, NeverExceedsTheLongest) {
  Wake(100, kLongestNs);
  EXPECT_EQ(spin_.limit_ns(), kLongestNs);
}

TEST_F(IdleSpinTest, IsShortAgainOnceWorkComesLate) {
  Wake(100, kLongestNs);
  Wake(3, kLongestNs + 1);
  EXPECT_EQ(spin_.limit_ns(), kShortestNs);
}

TEST_F(IdleSpinTest, StaysShortWhereWorkIsRare) {
  Wake(100, 10 * kLongestNs);
  EXPECT_EQ(spin_.limit_ns(), kShortestNs);
}

TEST_F(IdleSpinTest, IsFixedWhereBothEndsAreTheSame) {
  IdleSpin fixed(absl::ZeroDuration(), absl::ZeroDuration());
  fixed.OnWoken(0);
  fixed.OnWoken(kLongestNs);
  EXPECT_EQ(fixed.limit_ns(), 0);
}

}  // namespace
}  // namespace rdma
