// Goal: a CQ looks at all of its QPs, busy ones each turn and idle ones in
// turn, keeps completions in order, and makes exactly one event for each
// arming. Method: the CQ with targets and links that this test controls.
#include "rdma_transport/software/engine/completion_queue.h"

#include <poll.h>

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

// A target with a number of completions to give.
class FakeTarget final : public PollTarget {
 public:
  FakeTarget(CompletionQueue* cq, uint32_t number) : cq_(cq), number_(number) {}

  void Give(int count) {
    left_ += count;
    needs_service_ = true;
  }
  int retired() const { return retired_; }
  int left() const { return left_; }

  // Work that TakeSmall takes.
  void GiveSmall(int count) {
    small_left_ += count;
    needs_service_ = true;
    small_cq_ = cq_;
  }
  Taken TakeSmall(ibv_wc* next, ibv_wc* end, uint64_t*) override {
    ++takes_;
    for (; small_left_ != 0 && next != end; --small_left_, ++next) {
      *next = {};
      next->wr_id = next_id_++;
    }
    needs_service_ = small_left_ != 0 || left_ != 0;
    return {next, left_ == 0};
  }
  void Progress() override {
    ++progresses_;
    while (left_ != 0 && cq_->HasRoom()) {
      --left_;
      ibv_wc completion = {};
      completion.wr_id = next_id_++;
      completion.qp_num = number_;
      cq_->Push(completion, this, 1, solicited_);
    }
    needs_service_ = left_ != 0;
  }
  void ServiceLink() override { ++services_; }
  void Retire(uint32_t slots) override { retired_ += slots; }

  bool solicited_ = false;
  int services_ = 0;
  int progresses_ = 0;
  int takes_ = 0;

 private:
  CompletionQueue* const cq_;
  const uint32_t number_;
  uint64_t next_id_ = 0;
  int left_ = 0;
  int small_left_ = 0;
  int retired_ = 0;
};

class CompletionQueueTest : public testing::Test {
 protected:
  static constexpr int kCapacity = 8;

  void SetUp() override {
    channel_ = CompletionChannel::Create(&context_, Clock::System());
    ASSERT_NE(channel_, nullptr);
    events_ = *AsyncEvents::Create();
    cq_ = std::make_unique<CompletionQueue>(&context_, kCapacity, nullptr,
                                            channel_.get(), &line_, 0,
                                            events_.get());
  }
  void TearDown() override {
    for (auto& target : targets_) cq_->RemoveTarget(target.get());
    cq_->Detach();
  }

  FakeTarget* AddTarget() {
    targets_.push_back(
        std::make_unique<FakeTarget>(cq_.get(), targets_.size()));
    cq_->AddTarget(targets_.back().get());
    return targets_.back().get();
  }

  bool HasEvent() {
    CompletionQueue* const cq = channel_->GetEvent();
    if (cq == nullptr) return false;
    EXPECT_EQ(cq, cq_.get());
    cq->AckEvents(1);
    return true;
  }
  int ProgressesOfAll() const {
    int sum = 0;
    for (const auto& target : targets_) sum += target->progresses_;
    return sum;
  }
  bool Readable() {
    pollfd fd = {.fd = channel_->fd, .events = POLLIN, .revents = 0};
    return poll(&fd, 1, 0) == 1;
  }

  ibv_context context_ = {};
  CqLine line_ = {};
  std::unique_ptr<CompletionChannel> channel_;
  std::unique_ptr<AsyncEvents> events_;
  std::unique_ptr<CompletionQueue> cq_;
  std::vector<std::unique_ptr<FakeTarget>> targets_;
  ibv_wc completions_[64];
};

TEST_F(CompletionQueueTest, FillsTheCallersArrayInOrder) {
  FakeTarget* const target = AddTarget();
  target->Give(5);
  ASSERT_EQ(cq_->Poll(3, completions_), 3);
  EXPECT_EQ(completions_[2].wr_id, 2u);
  EXPECT_EQ(target->left(), 2) << "the others stay where they are";
  ASSERT_EQ(cq_->Poll(3, completions_), 2);
  EXPECT_EQ(completions_[1].wr_id, 4u);
  EXPECT_EQ(target->retired(), 5);
}

TEST_F(CompletionQueueTest, QueuedCompletionsComeFirstAndRetireWhenPolled) {
  FakeTarget* const target = AddTarget();
  target->Give(4);
  target->Progress();  // outside of a poll
  EXPECT_EQ(target->retired(), 0);
  target->Give(2);
  ASSERT_EQ(cq_->Poll(64, completions_), 6);
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(completions_[i].wr_id, i);
  EXPECT_EQ(target->retired(), 6);
}

TEST_F(CompletionQueueTest, ASingleTargetsSmallPacketsAreTakenDirectly) {
  FakeTarget* const target = AddTarget();
  target->GiveSmall(5);
  ASSERT_EQ(cq_->Poll(3, completions_), 3);
  ASSERT_EQ(cq_->Poll(3, completions_), 2);
  EXPECT_EQ(completions_[1].wr_id, 4u);
  EXPECT_EQ(cq_->Poll(3, completions_), 0);
  EXPECT_EQ(target->progresses_, 0);
}

TEST_F(CompletionQueueTest, WhatIsLeftBehindSmallPacketsFollowsInTheSamePoll) {
  FakeTarget* const target = AddTarget();
  target->GiveSmall(2);
  target->Give(5);
  ASSERT_EQ(cq_->Poll(4, completions_), 4);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(completions_[i].wr_id, i);
  ASSERT_EQ(cq_->Poll(4, completions_), 3);
  EXPECT_EQ(target->retired(), 5);
}

TEST_F(CompletionQueueTest, AnotherQueueDoesNotTakeThem) {
  const auto line = std::make_unique<CqLine>();
  CompletionQueue sends(&context_, kCapacity, nullptr, nullptr, line.get(), 1,
                        events_.get());
  FakeTarget* const target = AddTarget();
  sends.AddTarget(target);
  target->GiveSmall(2);
  EXPECT_EQ(sends.Poll(3, completions_), 0);
  EXPECT_EQ(target->takes_, 0);
  sends.RemoveTarget(target);
  sends.Detach();
}

TEST_F(CompletionQueueTest, SmallPacketsOvertakeNothing) {
  FakeTarget* const target = AddTarget();
  target->Give(2);
  target->Progress();  // outside of a poll
  target->GiveSmall(1);
  ASSERT_EQ(cq_->Poll(1, completions_), 1);
  EXPECT_EQ(completions_[0].wr_id, 0u);
  EXPECT_EQ(target->takes_, 0);
}

// The short way makes no events.
TEST_F(CompletionQueueTest, AnArmedQueueTakesSmallPacketsByTheLongWay) {
  FakeTarget* const target = AddTarget();
  cq_->RequestNotify(false);
  cq_->Poll(1, completions_);
  target->GiveSmall(1);
  cq_->Poll(1, completions_);
  EXPECT_EQ(target->takes_, 0);
  EXPECT_GT(target->progresses_, 0);
}

TEST_F(CompletionQueueTest, AttentionGoesBeforeSmallPackets) {
  FakeTarget* const target = AddTarget();
  target->GiveSmall(1);
  cq_->SetAttention(target);
  cq_->Poll(1, completions_);
  EXPECT_GT(target->progresses_, 0);
}

TEST_F(CompletionQueueTest, NobodyStarvesBehindABusyTarget) {
  FakeTarget* const greedy = AddTarget();
  FakeTarget* const modest = AddTarget();
  greedy->Give(1000);
  modest->Give(1);
  int turns = 0;
  while (modest->left() != 0) {
    cq_->Poll(4, completions_);
    ASSERT_LT(++turns, 4);
  }
}

// Before its owner sleeps: what arrived on any connection before the arming is
// found by the one poll that follows it, because nobody rang for it.
TEST_F(CompletionQueueTest, ThePollAfterArmingLooksEverywhere) {
  for (int i = 0; i < 1000; ++i) AddTarget();
  for (int busy : {999, 500, 100, 3}) {
    while (cq_->Poll(4, completions_) != 0) {
    }
    targets_[busy]->Give(1);
    cq_->RequestNotify(false);
    EXPECT_EQ(cq_->Poll(4, completions_), 1) << busy;
    EXPECT_TRUE(HasEvent());
  }
}

TEST_F(CompletionQueueTest, ServesManyBusyTargetsAlike) {
  for (int i = 0; i < 100; ++i) AddTarget()->Give(10);
  int total = 0;
  for (int turns = 0; total < 1000; ++turns) {
    ASSERT_LT(turns, 2000);
    total += cq_->Poll(16, completions_);
  }
}

TEST_F(CompletionQueueTest, RemovedTargetsTakeTheirCompletionsAlong) {
  FakeTarget* const first = AddTarget();
  FakeTarget* const second = AddTarget();
  first->Give(2);
  second->Give(2);
  first->Progress();
  second->Progress();
  cq_->RemoveTarget(first);
  ASSERT_EQ(cq_->Poll(64, completions_), 2);
  EXPECT_EQ(completions_[0].qp_num, 1u);
  cq_->AddTarget(first);
}

TEST_F(CompletionQueueTest, AnOverrunIsAnEventAndLosesTheRest) {
  FakeTarget* const target = AddTarget();
  ibv_wc completion = {};
  for (int i = 0; i < kCapacity + 3; ++i)
    cq_->Push(completion, target, 0, false);
  ibv_async_event event;
  ASSERT_EQ(events_->Get(&event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event.element.cq, cq_.get());
  events_->Ack(event);
  EXPECT_EQ(events_->Get(&event), -1) << "once";
  EXPECT_EQ(cq_->Poll(64, completions_), kCapacity);
}

TEST_F(CompletionQueueTest, ArmedMakesOneEvent) {
  FakeTarget* const target = AddTarget();
  cq_->RequestNotify(false);
  EXPECT_NE(line_.armed.load(), 0u);
  EXPECT_FALSE(Readable());
  target->Give(3);
  target->Progress();
  EXPECT_EQ(line_.armed.load(), 0u);
  EXPECT_TRUE(Readable());
  EXPECT_TRUE(HasEvent());
  EXPECT_FALSE(HasEvent());
  EXPECT_FALSE(Readable());
}

TEST_F(CompletionQueueTest, ACompletionThatPollFindsFirstMakesItsEventToo) {
  FakeTarget* const target = AddTarget();
  cq_->RequestNotify(false);
  target->Give(1);
  EXPECT_EQ(cq_->Poll(1, completions_), 1);
  EXPECT_TRUE(HasEvent());
}

TEST_F(CompletionQueueTest, WhatCameBeforeTheArmingMakesNone) {
  FakeTarget* const target = AddTarget();
  target->Give(1);
  target->Progress();
  cq_->RequestNotify(false);
  EXPECT_FALSE(Readable());
  EXPECT_EQ(cq_->Poll(1, completions_), 1);
  EXPECT_FALSE(HasEvent());
}

TEST_F(CompletionQueueTest, SolicitedOnlyWaitsForSolicited) {
  FakeTarget* const target = AddTarget();
  cq_->RequestNotify(true);
  EXPECT_EQ(line_.armed.load() & kSolicitedOnly, kSolicitedOnly);
  target->Give(1);
  target->Progress();
  EXPECT_FALSE(HasEvent());
  target->solicited_ = true;
  target->Give(1);
  target->Progress();
  EXPECT_TRUE(HasEvent());
}

TEST_F(CompletionQueueTest, TheWiderRequestStands) {
  cq_->RequestNotify(false);
  cq_->RequestNotify(true);
  EXPECT_EQ(line_.armed.load() & kSolicitedOnly, 0u);
}

TEST_F(CompletionQueueTest, EachArmingHasItsOwnNumber) {
  cq_->RequestNotify(false);
  const uint32_t first = line_.armed.load();
  cq_->RequestNotify(false);
  EXPECT_NE(line_.armed.load(), first);
  EXPECT_NE(line_.armed.load(), 0u);
}

TEST_F(CompletionQueueTest, WorkThatNobodyRingsForKeepsTheChannelReadable) {
  FakeTarget* const target = AddTarget();
  cq_->SetBusy(target, true);
  cq_->RequestNotify(false);
  EXPECT_TRUE(Readable());
  EXPECT_FALSE(HasEvent());
  EXPECT_TRUE(Readable()) << "until the work is done";
  target->Give(1);
  cq_->SetBusy(target, false);
  EXPECT_FALSE(HasEvent());
  target->Progress();
  EXPECT_TRUE(HasEvent());
  EXPECT_FALSE(Readable());
}

// The owner sleeps between the pieces of a long READ: each costs the look at a
// few connections, however many there are.
TEST_F(CompletionQueueTest, WorkThatNobodyRingsForIsDoneWithoutLookingAtAll) {
  for (int i = 0; i < 1000; ++i) AddTarget();
  FakeTarget* const busy = targets_[700].get();
  cq_->RequestNotify(false);
  EXPECT_EQ(cq_->Poll(1, completions_), 0);
  cq_->SetBusy(busy, true);
  for (auto& target : targets_) target->Give(0);
  EXPECT_FALSE(HasEvent());
  EXPECT_EQ(busy->progresses_, 1);
  EXPECT_LT(ProgressesOfAll(), 100);
  cq_->SetBusy(busy, false);
}

TEST_F(CompletionQueueTest, AHangUpIsAttendedToWithoutLookingAtAll) {
  for (int i = 0; i < 1000; ++i) AddTarget();
  cq_->SetAttention(targets_[500].get());
  cq_->SetAttention(targets_[700].get());
  cq_->SetAttention(targets_[900].get());
  cq_->RemoveTarget(targets_[900].get());
  cq_->Poll(1, completions_);
  EXPECT_EQ(targets_[500]->progresses_, 1);
  EXPECT_EQ(targets_[700]->progresses_, 1);
  EXPECT_EQ(ProgressesOfAll(), 2);
  cq_->Poll(1, completions_);
  EXPECT_EQ(ProgressesOfAll(), 2) << "once";
  cq_->AddTarget(targets_[900].get());
}

TEST_F(CompletionQueueTest, LooksAtDescriptorsWhereNothingHappens) {
  FakeTarget* const target = AddTarget();
  for (int i = 0; i < 10'000; ++i) cq_->Poll(1, completions_);
  EXPECT_GT(target->services_, 0);
}

}  // namespace
}  // namespace rdma::soft
