// A receiver that is not ready (RNR): how long a sender tries again, and what
// happens then. Method: messages without receives. ibv_modify_qp(3) for
// rnr_retry and min_rnr_timer; IBTA 9.7.5.2.8.
#include <chrono>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

// How patient the sender is, the receiver says when it connects.
class ReceiverNotReadyTest : public ConformanceTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
    buffer_ = client().Allocate(4096);
    target_ = server().Allocate(4096);
    ASSERT_FALSE(buffer_.empty() || target_.empty());
  }
  void TearDown() override {
    buffer_ = Region();
    target_ = Region();
    ConformanceTest::TearDown();
  }

  // A link whose server lets the client try `retries` times again.
  [[nodiscard]] bool ConnectWithRetries(uint8_t retries) {
    LinkOptions options;
    options.server_parameters.rnr_retry_count = retries;
    options.client_parameters.rnr_retry_count = retries;
    return Connect(options, &link_);
  }

  Link link_;
  Region buffer_;
  Region target_;
};
CONFORMANCE_SUITE(ReceiverNotReadyTest);

// 3 retries after 0.64 ms each; a second is far more than they may take.
TEST_P(ReceiverNotReadyTest, GivesUpAfterTheRetries) {
  ASSERT_TRUE(ConnectWithRetries(3));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(0, Post(link_.client, SendWr(1).Sge(buffer_.sge(0, 8))));
  ASSERT_EQ(0,
            Post(link_.client, SendWr(2).Sge(buffer_.sge(0, 8)).Unsignaled()));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_RNR_RETRY_EXC_ERR));
  // A flushed request completes whether it was signaled or not.
  EXPECT_THAT(Await(client().send_cq()), Flushed(2));
  EXPECT_EQ(StateOf(client().device(), link_.client), IBV_QPS_ERR);
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            absl::ToChronoNanoseconds(pump().patience() / 2));
}

TEST_P(ReceiverNotReadyTest, GivesUpAtOnceWithoutRetries) {
  ASSERT_TRUE(ConnectWithRetries(0));
  ASSERT_EQ(0, Post(link_.client, SendWr(1).Sge(buffer_.sge(0, 8)).Inline()));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_RNR_RETRY_EXC_ERR));
}

// WRITE_WITH_IMM needs a receive too (IBTA 9.4.3).
TEST_P(ReceiverNotReadyTest, GivesUpOnAWriteWithImmediate) {
  ASSERT_TRUE(ConnectWithRetries(1));
  ASSERT_EQ(0, Post(link_.client, WriteWr(1, target_.addr(), target_.rkey())
                                      .Sge(buffer_.sge(0, 8))
                                      .Imm(htonl(1))));
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_RNR_RETRY_EXC_ERR));
}

// 7 means for ever: well past what 6 retries would have waited.
TEST_P(ReceiverNotReadyTest, WaitsForEverWithSevenRetries) {
  ASSERT_TRUE(ConnectWithRetries(7));
  buffer_.Fill(4);
  ASSERT_EQ(0, Post(link_.client, SendWr(1).Sge(buffer_.sge(0, 2000))));
  pump().TurnFor(absl::Milliseconds(60));
  ExpectSilence(client().send_cq());
  ASSERT_EQ(0,
            PostReceive(link_.server, {.wr_id = 2, .sges = {target_.sge()}}));
  EXPECT_THAT(Await(server().recv_cq()), Received(2, 2000));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_EQ(target_.bytes(0, 2000), buffer_.bytes(0, 2000));
}

TEST_P(ReceiverNotReadyTest, ALargeOneWithAnImmediateWaitsAsWell) {
  ASSERT_TRUE(ConnectWithRetries(7));
  buffer_.Fill(5);
  ASSERT_EQ(
      0, Post(link_.client, SendWr(1).Sge(buffer_.sge(0, 4000)).Imm(htonl(7))));
  ASSERT_EQ(
      0, Post(link_.client, SendWr(2).Sge(buffer_.sge(8, 3000)).Imm(htonl(8))));
  pump().TurnFor(absl::Milliseconds(20));
  ExpectSilence(client().send_cq());
  for (uint64_t id : {3, 4}) {
    ASSERT_EQ(
        0, PostReceive(link_.server, {.wr_id = id, .sges = {target_.sge()}}));
    const ibv_wc wc = Await(server().recv_cq());
    const size_t bytes = id == 3 ? 4000 : 3000;
    EXPECT_THAT(wc, Received(id, bytes));
    EXPECT_EQ(wc.imm_data, htonl(static_cast<uint32_t>(id + 4)));
    EXPECT_EQ(target_.bytes(0, bytes), buffer_.bytes(id == 3 ? 0 : 8, bytes));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(id - 2));
  }
}

// What is behind a fenced message does not hold it up when it is sent again.
TEST_P(ReceiverNotReadyTest, AFencedMessageWaitsForNothingBehindIt) {
  if (!deviations().resends_fenced_requests) {
    GTEST_SKIP() << "this device waits for the READ behind a fenced message";
  }
  ASSERT_TRUE(ConnectWithRetries(7));
  ASSERT_EQ(0, Post(link_.client, SendWr(1).Sge(buffer_.sge(0, 8)).Fence()));
  ASSERT_EQ(
      0,
      Post(link_.client,
           ReadWr(2, target_.addr(), target_.rkey()).Sge(buffer_.sge(8, 8))));
  ExpectSilence(client().send_cq());
  ASSERT_EQ(0,
            PostReceive(link_.server, {.wr_id = 3, .sges = {target_.sge()}}));
  EXPECT_THAT(Await(server().recv_cq()), Received(3, 8));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_RDMA_READ));
}

// One-sided requests need no receive and so never wait for one.
TEST_P(ReceiverNotReadyTest, ReadsAndWritesNeedNoReceive) {
  ASSERT_TRUE(ConnectWithRetries(0));
  ASSERT_EQ(
      0,
      Post(link_.client,
           WriteWr(1, target_.addr(), target_.rkey()).Sge(buffer_.sge(0, 8))));
  ASSERT_EQ(
      0,
      Post(link_.client,
           ReadWr(2, target_.addr(), target_.rkey()).Sge(buffer_.sge(0, 8))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_RDMA_WRITE));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_RDMA_READ));
  ExpectSilence(server().recv_cq());
}

}  // namespace
}  // namespace rdma::conformance
