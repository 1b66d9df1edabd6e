// Goal: the peer is asked for the acknowledgements that somebody waits for, in
// time and no more; and what a peer that is gone leaves behind fails. Method: a
// requester on a link of this test, which says what was asked of it and when.
#include "rdma_transport/software/engine/requester.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "rdma_transport/software/engine/requester_fixture.h"

namespace rdma::soft {
namespace {

class RequesterTest : public RequesterFixture {
 protected:
  void SetUp() override {
    qp_.clock = Clock::System();
    RequesterFixture::SetUp();
  }

  void Post(uint64_t wr_id, unsigned int flags = IBV_SEND_SIGNALED,
            ibv_wr_opcode opcode = IBV_WR_SEND) {
    ibv_send_wr wr = {};
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = flags;
    ibv_send_wr* bad;
    ASSERT_EQ(requester_->Post(&wr, &bad), 0);
  }
  // The peer consumed the packets up to this one, numbered from 1.
  bool Acknowledge(uint64_t count) {
    link_.acknowledged_ = count;
    return Turn();
  }
  // As many turns as it takes until acknowledgements are looked for.
  bool Turn() {
    bool failed = false;
    for (uint32_t i = 0; i < Requester::kTurnsPerLook && !failed; ++i) {
      uint64_t budget_bytes = 1 << 20;
      failed = requester_->Progress(&budget_bytes);
    }
    return failed;
  }
  std::vector<ibv_wc> Completions() {
    std::vector<ibv_wc> completions(64);
    completions.resize(cq_->Poll(64, completions.data()));
    return completions;
  }
};

// What needs no acknowledgement does not wait for a look at them.
TEST_F(RequesterTest, WhatIsDoneCompletesInTheNextTurn) {
  Post(1, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE);  // of nothing
  uint64_t budget_bytes = 1;
  EXPECT_FALSE(requester_->Progress(&budget_bytes));
  EXPECT_EQ(Completions().size(), 1u);
}

// Who consumes the packet sees what is asked for.
TEST_F(RequesterTest, AsksBeforeItSends) {
  Post(1);
  EXPECT_EQ(link_.wanted_at_send_, std::vector<uint64_t>{1});
  Acknowledge(1);
  Post(2, 0);
  Post(3);
  EXPECT_EQ(link_.wanted_at_send_, (std::vector<uint64_t>{1, 0, 3}));
}

TEST_F(RequesterTest, AsksForNothingOnceNobodyWaits) {
  Post(1);
  Post(2, 0);
  Acknowledge(1);
  EXPECT_EQ(link_.wanted_, 0u);
  Acknowledge(2);
  EXPECT_EQ(link_.wanted_, 0u);
  EXPECT_EQ(Completions().size(), 1u);
}

TEST_F(RequesterTest, AsksForTheSignaledOnesOnly) {
  for (uint64_t i = 1; i <= 6; ++i) Post(i, i % 3 == 0 ? IBV_SEND_SIGNALED : 0);
  EXPECT_EQ(link_.wanted_, 3u);
  Acknowledge(1);
  EXPECT_EQ(link_.wanted_, 3u);
  Acknowledge(4);
  EXPECT_EQ(link_.wanted_, 6u);
  EXPECT_EQ(Completions().size(), 1u);
  Acknowledge(6);
  EXPECT_EQ(link_.wanted_, 0u);
  EXPECT_EQ(Completions().size(), 1u);
}

// A request that is done where it was posted completes behind the packets that
// were sent before it.
TEST_F(RequesterTest, AsksForWhatASignaledOneThatIsDoneWaitsFor) {
  Post(1, 0);
  Post(2, 0);
  Post(3, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ);  // it may have no READs
  EXPECT_FALSE(Turn());
  EXPECT_EQ(link_.wanted_, 2u);
  Acknowledge(1);
  EXPECT_EQ(link_.wanted_, 2u);
  EXPECT_TRUE(Acknowledge(2));
  const std::vector<ibv_wc> completions = Completions();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].wr_id, 3u);
}

// Nor do those before it, if it is the last one that anybody waits for.
TEST_F(RequesterTest, WhatIsDoneDoesNotOvertakeWhatWasSent) {
  Post(1, 0);
  Post(2, 0);
  Post(3, IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE);  // of nothing
  EXPECT_FALSE(Turn());
  EXPECT_EQ(Completions().size(), 0u);
  EXPECT_FALSE(Acknowledge(1));
  EXPECT_EQ(Completions().size(), 0u);
  EXPECT_FALSE(Acknowledge(2));
  EXPECT_EQ(Completions().size(), 1u);
}

TEST_F(RequesterTest, OneAcknowledgementCompletesAllBeforeASignaledOne) {
  for (uint64_t i = 1; i <= 5; ++i) Post(i, 0);
  Post(6);
  Post(7, 0);
  EXPECT_FALSE(Acknowledge(5));
  EXPECT_EQ(Completions().size(), 0u);
  EXPECT_FALSE(Acknowledge(6));
  EXPECT_EQ(Completions().size(), 1u);
  // What was sent behind it is still on its way: it fails with the peer.
  requester_->OnPeerGone();
  EXPECT_TRUE(Turn());
  const std::vector<ibv_wc> completions = Completions();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].wr_id, 7u);
  EXPECT_EQ(completions[0].status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(RequesterTest, AsksForRoomWhereThereIsNone) {
  for (uint64_t i = 1; i <= FakeLink::kRoom; ++i) Post(i, 0);
  EXPECT_EQ(link_.wanted_, 0u);
  Post(9, 0);
  EXPECT_EQ(link_.wanted_, 1u) << "any will do";
  Acknowledge(1);
  EXPECT_EQ(link_.sent_, 9u);
  EXPECT_EQ(link_.wanted_, 0u);
  // Beside one that is signaled.
  Post(10);
  Post(11);
  EXPECT_EQ(link_.sent_, 9u);
  EXPECT_EQ(link_.wanted_, 2u);
  Acknowledge(2);
  EXPECT_EQ(link_.sent_, 10u);
  EXPECT_GT(link_.wanted_, 0u);
  EXPECT_LE(link_.wanted_, 3u);
  Acknowledge(9);
  EXPECT_EQ(link_.sent_, 11u);
  EXPECT_EQ(link_.wanted_, 10u);
  Acknowledge(11);
  EXPECT_EQ(link_.wanted_, 0u);
  EXPECT_EQ(Completions().size(), 2u);
}

// An older request that the peer never answers does not wait behind a younger
// one that failed here.
TEST_F(RequesterTest, APeerThatIsGoneEndsWhatCameBeforeAFailure) {
  Post(1);
  Post(2, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ);  // it may have no READs
  EXPECT_FALSE(Turn());
  requester_->OnPeerGone();
  EXPECT_TRUE(Turn());
  requester_->Flush();
  const std::vector<ibv_wc> completions = Completions();
  ASSERT_EQ(completions.size(), 2u);
  EXPECT_EQ(completions[0].wr_id, 1u);
  EXPECT_EQ(completions[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(completions[1].wr_id, 2u);
  EXPECT_EQ(completions[1].status, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace
}  // namespace rdma::soft
