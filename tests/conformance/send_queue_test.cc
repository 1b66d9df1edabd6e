// The send queue: signaled and unsignaled requests, lists of them, its depth,
// and the order of completions. Method: fill, overfill, chain, and count what
// comes out. ibv_post_send(3), ibv_create_qp(3); IBTA 10.8.
#include <cerrno>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

using testing::ElementsAre;

constexpr uint32_t kDepth = 16;

class SendQueueTest : public ConnectedTest {
 protected:
  LinkOptions Options() override {
    return {.client = {.max_send_wr = kDepth}, .server = {.max_recv_wr = 512}};
  }

  // What the device made of kDepth.
  uint32_t Depth() {
    ibv_qp_attr attr = {};
    ibv_qp_init_attr init = {};
    EXPECT_EQ(0,
              client().device().QueryQp(client_qp_, &attr, IBV_QP_CAP, &init));
    return init.cap.max_send_wr;
  }

  WorkRequest Small(uint64_t wr_id) {
    return SendWr(wr_id).Sge(client_buffer_.sge(wr_id % 1000, 8));
  }
};
CONFORMANCE_SUITE(SendQueueTest);

TEST_P(SendQueueTest, IsAtLeastAsDeepAsAsked) { EXPECT_GE(Depth(), kDepth); }

// Only signaled requests make a completion, and it says that all before it are
// done too.
TEST_P(SendQueueTest, OnlySignaledRequestsComplete) {
  PostServerReceives(8, 8);
  for (uint64_t id = 1; id <= 8; ++id) {
    WorkRequest send = Small(id);
    if (id % 4 != 0) send.Unsignaled();
    ASSERT_EQ(0, Post(client_qp_, send));
  }
  EXPECT_THAT(
      Await(client().send_cq(), 2),
      ElementsAre(Succeeded(4, IBV_WC_SEND), Succeeded(8, IBV_WC_SEND)));
  // The last completion implies that the earlier messages arrived.
  EXPECT_EQ(Await(server().recv_cq(), 8).size(), 8u);
  ExpectSilence(client().send_cq());
}

TEST_P(SendQueueTest, SignalsEverythingWhereTheQueueSaysSo) {
  Link link;
  ASSERT_TRUE(Connect({.client = {.sq_sig_all = true}}, &link));
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(0,
              PostReceive(link.server,
                          {.wr_id = id, .sges = {server_buffer_.sge(0, 8)}}));
    ASSERT_EQ(0, Post(link.client, Small(id).Unsignaled()));
  }
  EXPECT_THAT(Await(client().send_cq(), 3),
              ElementsAre(Succeeded(1), Succeeded(2), Succeeded(3)));
}

// "It stops processing WRs from this list at the first failure ... and returns
// this failing WR through bad_wr."
TEST_P(SendQueueTest, NamesTheFirstRefusedRequestOfAList) {
  PostServerReceives(4, 8);
  std::vector<WorkRequest> list = {Small(1), Small(2), Small(3), Small(4)};
  for (uint32_t i = 0; i < 64; ++i) list[2].Sge(client_buffer_.sge(i, 1));
  size_t posted = 0;
  EXPECT_NE(0, PostList(client_qp_, absl::MakeSpan(list), &posted));
  EXPECT_EQ(posted, 2u);
  EXPECT_THAT(Await(client().send_cq(), 2),
              ElementsAre(Succeeded(1), Succeeded(2)));
  ExpectSilence(client().send_cq());
  // The queue goes on with what comes next.
  ASSERT_EQ(0, Post(client_qp_, Small(5)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(5));
}

// At once, or by a completion in error; it never counts as done.
TEST_P(SendQueueTest, RefusesAnUnknownOpcode) {
  ibv_send_wr wr = {};
  wr.wr_id = 1;
  wr.opcode = static_cast<ibv_wr_opcode>(99);
  if (Post(client_qp_, WorkRequest(wr)) != 0) return;
  const ibv_wc wc = Await(client().send_cq());
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_NE(wc.status, IBV_WC_SUCCESS);
}

// A slot is free when the completion of its request, or of a later one, was
// polled, and not when the device is done with it (IBTA 10.8.3.1).
TEST_P(SendQueueTest, RefusesMoreThanItHoldsUntilACompletionIsPolled) {
  if (!deviations().send_queue_fills) {
    GTEST_SKIP() << "the send queue of this device never fills";
  }
  const uint32_t depth = Depth();
  PostServerReceives(4 * depth, 8);
  // The whole queue in one list, and one request too many behind it.
  std::vector<WorkRequest> list;
  for (uint32_t id = 0; id <= depth; ++id) {
    list.push_back(Small(id));
    if (id + 1 != depth / 2) list.back().Unsignaled();
  }
  size_t posted = 0;
  EXPECT_EQ(ENOMEM, PostList(client_qp_, absl::MakeSpan(list), &posted));
  EXPECT_EQ(posted, depth);

  // All have arrived, but none was polled at this end: still full.
  EXPECT_EQ(ENOMEM, Post(client_qp_, Small(1)));
  // The one signaled completion frees its own slot and all before it.
  EXPECT_THAT(Await(client().send_cq()), Succeeded(depth / 2 - 1));
  EXPECT_EQ(Await(server().recv_cq(), depth).size(), depth);
  for (uint32_t i = 0; i < depth / 2; ++i) {
    ASSERT_EQ(0, Post(client_qp_, Small(200 + i))) << "slot " << i;
  }
  EXPECT_EQ(ENOMEM, Post(client_qp_, Small(1)));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(200));
  EXPECT_EQ(Await(client().send_cq(), depth / 2 - 1).size(), depth / 2 - 1);
}

// Ever the same few slots, round and round.
TEST_P(SendQueueTest, KeepsUpForManyTurnsOfTheQueue) {
  constexpr int kMessages = 5000;
  const uint32_t batch = kDepth / 2;
  PostServerReceives(64, 8);
  uint64_t sent = 0;
  uint64_t received = 0;
  while (sent < kMessages) {
    std::vector<WorkRequest> list;
    for (uint32_t i = 0; i < batch; ++i) {
      list.push_back(Small(sent + i).Imm(htonl(sent + i)));
      if (i + 1 < batch) list.back().Unsignaled();
    }
    size_t posted = 0;
    ASSERT_EQ(0, PostList(client_qp_, absl::MakeSpan(list), &posted));
    sent += batch;
    ASSERT_THAT(Await(client().send_cq()), Succeeded(sent - 1));
    for (uint32_t i = 0; i < batch; ++i) {
      const ibv_wc wc = Await(server().recv_cq());
      ASSERT_EQ(wc.imm_data, htonl(received)) << testing::PrintToString(wc);
      ++received;
      ASSERT_EQ(0,
                PostReceive(server_qp_, {.wr_id = received,
                                         .sges = {server_buffer_.sge(0, 8)}}));
    }
  }
}

// A CQ of the least size that the queues need never overflows.
TEST_P(SendQueueTest, FillsACompletionQueueExactly) {
  ibv_cq* cq = client().CreateCq(kDepth);
  ASSERT_NE(cq, nullptr);
  Link link;
  ASSERT_TRUE(
      Connect({.client = {.max_send_wr = kDepth, .send_cq = cq}}, &link));
  for (int round = 0; round < 3; ++round) {
    for (uint32_t id = 0; id < kDepth; ++id) {
      ASSERT_EQ(0,
                PostReceive(link.server,
                            {.wr_id = id, .sges = {server_buffer_.sge(0, 8)}}));
    }
    for (uint32_t id = 0; id < kDepth; ++id) {
      ASSERT_EQ(0, Post(link.client, Small(id)));
    }
    EXPECT_EQ(Await(server().recv_cq(), kDepth).size(), kDepth);
    for (uint32_t id = 0; id < kDepth; ++id) {
      EXPECT_THAT(Await(cq), Succeeded(id));
    }
  }
}

}  // namespace
}  // namespace rdma::conformance
