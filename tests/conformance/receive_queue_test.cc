// The receive queue: receives are used in the order they were posted, one a
// message, a message that does not fit breaks the connection, and one that
// finds no receive waits for it (RNR). ibv_post_recv(3); IBTA 9.7.5.2.8, 10.8.
#include <cerrno>
#include <chrono>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class ReceiveQueueTest : public ConnectedTest {
 protected:
  WorkRequest Send(uint64_t wr_id, size_t bytes) {
    return SendWr(wr_id).Sge(client_buffer_.sge(0, bytes));
  }
};
CONFORMANCE_SUITE(ReceiveQueueTest);

TEST_P(ReceiveQueueTest, UsesReceivesInTheOrderPosted) {
  for (uint64_t id : {5, 3, 9, 1}) {
    ASSERT_EQ(0, PostReceive(server_qp_,
                             {.wr_id = id,
                              .sges = {server_buffer_.sge(id * 100, 100)}}));
  }
  for (size_t bytes : {10, 20, 30, 40}) {
    ASSERT_EQ(0, Post(client_qp_, Send(bytes, bytes)));
  }
  EXPECT_THAT(Await(server().recv_cq(), 4),
              testing::ElementsAre(Received(5, 10), Received(3, 20),
                                   Received(9, 30), Received(1, 40)));
  EXPECT_EQ(server_buffer_.bytes(900, 30), client_buffer_.bytes(0, 30));
}

// As requests and responses do, with a signaled one now and then.
TEST_P(ReceiveQueueTest, SmallMessagesGoBackAndForthWithOneCqForEachEnd) {
  constexpr uint64_t kSends = 10'000;  // their wr_ids begin there
  constexpr uint64_t kMessages = 800;
  constexpr uint64_t kSignaledEach = kMessages / 2 / 8;
  ibv_cq* const cqs[] = {client().CreateCq(64), server().CreateCq(64)};
  Link link;
  ASSERT_TRUE(Connect({.client = {.send_cq = cqs[0], .recv_cq = cqs[0]},
                       .server = {.send_cq = cqs[1], .recv_cq = cqs[1]}},
                      &link));
  ibv_qp* const qps[] = {link.client, link.server};
  Region* const buffers[] = {&client_buffer_, &server_buffer_};
  uint64_t sent[] = {0, 0};  // signaled ones that are complete
  for (uint64_t i = 0; i < kMessages; ++i) {
    const size_t from = i % 2, to = 1 - from;
    const size_t bytes = i % 65;
    ASSERT_EQ(0, PostReceive(qps[to], {.wr_id = i,
                                       .sges = {buffers[to]->sge(4096, 64)}}));
    WorkRequest request = SendWr(kSends + i)
                              .Sge(buffers[from]->sge(i, bytes))
                              .Imm(static_cast<__be32>(i))
                              .Inline();
    if (i / 2 % 8 != 7) request.Unsignaled();
    ASSERT_EQ(0, Post(qps[from], request));
    ibv_wc wc = Await(cqs[to]);
    for (; wc.wr_id >= kSends; wc = Await(cqs[to])) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ++sent[to];
    }
    ASSERT_THAT(wc, Received(i, static_cast<uint32_t>(bytes)));
    ASSERT_EQ(wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV),
              static_cast<unsigned int>(IBV_WC_WITH_IMM));
    ASSERT_EQ(wc.imm_data, static_cast<__be32>(i));
    ASSERT_EQ(wc.qp_num, qps[to]->qp_num);
    ASSERT_EQ(buffers[to]->bytes(4096, bytes), buffers[from]->bytes(i, bytes));
  }
  for (size_t end : {0, 1}) {
    for (; sent[end] != kSignaledEach; ++sent[end]) {
      ASSERT_EQ(Await(cqs[end]).status, IBV_WC_SUCCESS);
    }
    ExpectSilence(cqs[end]);
  }
}

TEST_P(ReceiveQueueTest, FailsASmallMessageIntoMemoryThatIsGoneMeanwhile) {
  Region memory = server().Allocate(4096);
  ASSERT_FALSE(memory.empty());
  WorkRequest message =
      SendWr(1).Sge(client_buffer_.sge(0, 64)).Imm(7).Inline().Unsignaled();
  for (uint64_t id : {1, 2}) {
    ASSERT_EQ(
        0, PostReceive(server_qp_, {.wr_id = id, .sges = {memory.sge(0, 64)}}));
  }
  ASSERT_EQ(0, Post(client_qp_, message));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 64));
  ASSERT_EQ(0, memory.Deregister());
  memory.Clear();
  ASSERT_EQ(0, Post(client_qp_, message));
  EXPECT_THAT(Await(server().recv_cq()),
              Failed(2, deviations().receive_wrong_lkey));
  EXPECT_EQ(memory.data()[0], 0);
  EXPECT_THAT(Await(client().send_cq()).status, testing::Ne(IBV_WC_SUCCESS));
}

TEST_P(ReceiveQueueTest, TakesAListAndNamesTheFirstRefused) {
  Link link;
  ASSERT_TRUE(Connect({.server = {.max_recv_wr = 8}}, &link));
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_EQ(0,
            server().device().QueryQp(link.server, &attr, IBV_QP_CAP, &init));
  const uint32_t depth = init.cap.max_recv_wr;
  ASSERT_GE(depth, 8u);
  std::vector<ReceiveRequest> list;
  for (uint32_t id = 0; id <= depth; ++id) {
    list.push_back({.wr_id = id, .sges = {server_buffer_.sge(0, 16)}});
  }
  size_t posted = 0;
  if (!deviations().exact_queue_depths) {
    GTEST_SKIP() << "this device takes more receives than it says";
  }
  EXPECT_EQ(ENOMEM, PostReceiveList(link.server, list, &posted));
  EXPECT_EQ(posted, depth);
  // One message makes room for one receive.
  ASSERT_EQ(0, Post(link.client, Send(1, 16)));
  EXPECT_THAT(Await(server().recv_cq()), Received(0, 16));
  EXPECT_EQ(0, PostReceive(link.server, list[0]));
  EXPECT_EQ(ENOMEM, PostReceive(link.server, list[0]));
}

// A length error at the responder, an invalid request at the requester, and
// both QPs are in ERR (IBTA 9.9.2.4.3, 9.9.3.1).
TEST_P(ReceiveQueueTest, FailsBothEndsWhenTheMessageDoesNotFit) {
  PostServerReceives(2, 64);
  ASSERT_EQ(0, Post(client_qp_, Send(1, 65)));
  ASSERT_EQ(0, Post(client_qp_, Send(2, 1)));
  EXPECT_THAT(Await(server().recv_cq()),
              Failed(1000, deviations().receive_too_small_responder));
  EXPECT_THAT(Await(server().recv_cq()), Flushed(1001));
  EXPECT_THAT(Await(client().send_cq()),
              Failed(1, deviations().receive_too_small_requester));
  EXPECT_THAT(Await(client().send_cq()), Flushed(2));
  EXPECT_EQ(StateOf(server().device(), server_qp_), IBV_QPS_ERR);
  EXPECT_EQ(StateOf(client().device(), client_qp_), IBV_QPS_ERR);
  // Not a byte behind the receive's end was written.
  EXPECT_EQ(server_buffer_.data()[64], 0);
}

TEST_P(ReceiveQueueTest, FailsAnInlineMessageThatDoesNotFit) {
  PostServerReceives(1, 4);
  ASSERT_EQ(0, Post(client_qp_, Send(1, 5).Inline()));
  EXPECT_THAT(Await(server().recv_cq()),
              Failed(1000, deviations().receive_too_small_responder));
  EXPECT_THAT(Await(client().send_cq()),
              Failed(1, deviations().receive_too_small_requester));
  EXPECT_EQ(server_buffer_.data()[4], 0);
}

TEST_P(ReceiveQueueTest, FailsABodyForAReceiveWithNoBuffer) {
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 1}));
  ASSERT_EQ(0, Post(client_qp_, Send(2, 1)));
  EXPECT_THAT(Await(server().recv_cq()),
              Failed(1, deviations().receive_too_small_responder));
}

TEST_P(ReceiveQueueTest, FailsAReceiveIntoMemoryItMayNotWrite) {
  Region read_only =
      server().Allocate(4096, IBV_ACCESS_REMOTE_READ, MemoryUse::kLocal);
  ASSERT_FALSE(read_only.empty());
  ASSERT_EQ(
      0, PostReceive(server_qp_, {.wr_id = 1, .sges = {read_only.sge(0, 64)}}));
  ASSERT_EQ(0, Post(client_qp_, Send(2, 64)));
  EXPECT_THAT(Await(server().recv_cq()),
              Failed(1, deviations().receive_not_writable));
  EXPECT_NE(Await(client().send_cq()).status, IBV_WC_SUCCESS);
  EXPECT_EQ(read_only.data()[0], 0);
}

// An early message is not lost: it waits, is delivered as soon as a receive is
// posted, and those behind it keep their order.
TEST_P(ReceiveQueueTest, DeliversAMessageThatCameBeforeItsReceive) {
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(0, Post(client_qp_, Send(id, 10 * id)));
  }
  pump().TurnFor(absl::Milliseconds(2));
  PostServerReceives(3, 100);
  EXPECT_THAT(Await(server().recv_cq(), 3),
              testing::ElementsAre(Received(1000, 10), Received(1001, 20),
                                   Received(1002, 30)));
  EXPECT_THAT(Await(client().send_cq(), 3),
              testing::ElementsAre(Succeeded(1), Succeeded(2), Succeeded(3)));
}

}  // namespace
}  // namespace rdma::conformance
