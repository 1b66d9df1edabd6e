// Goal: every deadline is reported once, in order, when it has passed, and the
// descriptor tells. Method: deadlines that have passed already, far ones, and
// one that is waited for with poll(2).
#include "rdma_transport/hardware/deadlines.h"

#include <poll.h>

#include <memory>

#include "gtest/gtest.h"

namespace rdma {
namespace {

class TestId final : public CmId {
 public:
  SocketAddress local_address() const override { return {}; }
  SocketAddress peer_address() const override { return {}; }
};

class DeadlinesTest : public testing::Test {
 protected:
  bool Readable(int wait_ms = 0) {
    pollfd descriptor = {.fd = deadlines_->fd(), .events = POLLIN};
    return poll(&descriptor, 1, wait_ms) == 1;
  }

  std::unique_ptr<Deadlines> deadlines_ = *Deadlines::Create();
  TestId first_;
  TestId second_;
};

TEST_F(DeadlinesTest, ReportsThePassedInOrderAndOnce) {
  deadlines_->Set(&first_, absl::Nanoseconds(1));
  deadlines_->Set(&second_, absl::Nanoseconds(2));
  EXPECT_TRUE(Readable(1000));
  EXPECT_EQ(deadlines_->TakeExpired(), &first_);
  EXPECT_TRUE(Readable(1000));
  EXPECT_EQ(deadlines_->TakeExpired(), &second_);
  EXPECT_EQ(deadlines_->TakeExpired(), nullptr);
  EXPECT_FALSE(Readable());
}

TEST_F(DeadlinesTest, ZeroAndLessHavePassed) {
  deadlines_->Set(&first_, -absl::InfiniteDuration());
  EXPECT_TRUE(Readable(1000));
  EXPECT_EQ(deadlines_->TakeExpired(), &first_);
  deadlines_->Set(&first_, absl::ZeroDuration());
  EXPECT_EQ(deadlines_->TakeExpired(), &first_);
}

TEST_F(DeadlinesTest, KeepsQuietBefore) {
  deadlines_->Set(&first_, absl::Hours(1));
  deadlines_->Set(&second_, absl::InfiniteDuration());
  EXPECT_FALSE(Readable());
  EXPECT_EQ(deadlines_->TakeExpired(), nullptr);
  EXPECT_GT(deadlines_->Remaining(&first_), absl::Minutes(59));
  EXPECT_LE(deadlines_->Remaining(&first_), absl::Hours(1));
  EXPECT_EQ(deadlines_->Remaining(&second_), absl::InfiniteDuration());
}

TEST_F(DeadlinesTest, TheLastSettingHolds) {
  deadlines_->Set(&first_, absl::ZeroDuration());
  deadlines_->Set(&first_, absl::Hours(1));
  EXPECT_EQ(deadlines_->TakeExpired(), nullptr);
  EXPECT_FALSE(Readable());
  deadlines_->Set(&first_, absl::ZeroDuration());
  EXPECT_EQ(deadlines_->TakeExpired(), &first_);
}

TEST_F(DeadlinesTest, TheClearedIsForgotten) {
  deadlines_->Set(&first_, absl::ZeroDuration());
  deadlines_->Set(&second_, absl::Hours(1));
  deadlines_->Clear(&first_);
  deadlines_->Clear(&first_);
  EXPECT_FALSE(Readable());
  EXPECT_EQ(deadlines_->TakeExpired(), nullptr);
}

// A deadline far away would overflow nanoseconds.
TEST_F(DeadlinesTest, TakesAnyDuration) {
  deadlines_->Set(&first_, absl::Hours(24 * 365 * 1000));
  EXPECT_EQ(deadlines_->TakeExpired(), nullptr);
  EXPECT_FALSE(Readable());
}

}  // namespace
}  // namespace rdma
