// What ERR does to what was posted, and to what is posted then: everything that
// was not done completes in the order posted, flushed, signaled or not.
// ibv_modify_qp(3), ibv_post_send(3); IBTA 10.3.1.7, 10.8.
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class FlushTest : public ConnectedTest {
 protected:
  ReceiveRequest Receive(uint64_t wr_id) {
    return {.wr_id = wr_id, .sges = {client_buffer_.sge(0, 8)}};
  }
  WorkRequest Send(uint64_t wr_id) {
    return SendWr(wr_id).Sge(client_buffer_.sge(0, 8));
  }
};
CONFORMANCE_SUITE(FlushTest);

// Both queues flush, each in the order posted, unsignaled requests too.
TEST_P(FlushTest, ErrorFlushesBothQueuesInOrder) {
  for (uint64_t id = 0; id < 10; ++id) {
    ASSERT_EQ(0, PostReceive(client_qp_, Receive(100 + id)));
  }
  // No receive on the other end: these stay where they are.
  for (uint64_t id = 0; id < 10; ++id) {
    WorkRequest send = Send(id);
    if (id % 2 == 0) send.Unsignaled();
    ASSERT_EQ(0, Post(client_qp_, send));
  }
  MoveToError(client().device(), client_qp_);
  for (uint64_t id = 0; id < 10; ++id) {
    const ibv_wc wc = Await(client().send_cq());
    EXPECT_THAT(wc, Flushed(id));
    EXPECT_EQ(wc.qp_num, client_qp_->qp_num);
    EXPECT_THAT(Await(client().recv_cq()), Flushed(100 + id));
  }
  ExpectSilence(client().send_cq());
  ExpectSilence(client().recv_cq());
}

// What was done before keeps its success; what was not is flushed; the line
// between them is clean.
TEST_P(FlushTest, ErrorKeepsWhatWasDone) {
  PostServerReceives(3, 8);
  for (uint64_t id = 0; id < 8; ++id) ASSERT_EQ(0, Post(client_qp_, Send(id)));
  EXPECT_THAT(Await(server().recv_cq()), Received(1000, 8));
  EXPECT_THAT(Await(server().recv_cq()), Received(1001, 8));
  EXPECT_THAT(Await(server().recv_cq()), Received(1002, 8));
  for (uint64_t id = 0; id < 3; ++id) {
    EXPECT_THAT(Await(client().send_cq()), Succeeded(id));
  }
  MoveToError(client().device(), client_qp_);
  for (uint64_t id = 3; id < 8; ++id) {
    EXPECT_THAT(Await(client().send_cq()), Flushed(id));
  }
}

// IBTA 10.3.1.7: posts to a QP in ERR are taken, and flushed.
TEST_P(FlushTest, TakesPostsInErrorAndFlushesThem) {
  MoveToError(client().device(), client_qp_);
  for (uint64_t id = 0; id < 3; ++id) {
    EXPECT_EQ(0, Post(client_qp_, Send(id).Unsignaled()));
    EXPECT_EQ(0, Post(client_qp_, ReadWr(10 + id, server_buffer_.addr(),
                                         server_buffer_.rkey())
                                      .Sge(client_buffer_.sge(0, 8))));
    EXPECT_EQ(0, PostReceive(client_qp_, Receive(20 + id)));
    EXPECT_THAT(Await(client().send_cq()), Flushed(id));
    EXPECT_THAT(Await(client().send_cq()), Flushed(10 + id));
    if (deviations().flushes_receives_posted_in_error) {
      EXPECT_THAT(Await(client().recv_cq()), Flushed(20 + id));
    }
  }
}

// Flushing needs slots as well: a full queue flushes whole, and its slots come
// back as the flushed completions are polled.
TEST_P(FlushTest, FlushesAFullQueue) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  ASSERT_EQ(0, client().device().QueryQp(client_qp_, &attr, IBV_QP_CAP, &init));
  const uint32_t depth = init.cap.max_send_wr;
  for (uint32_t id = 0; id < depth; ++id) {
    ASSERT_EQ(0, Post(client_qp_, Send(id).Unsignaled()));
  }
  MoveToError(client().device(), client_qp_);
  for (uint32_t id = 0; id < depth; ++id) {
    ASSERT_THAT(Await(client().send_cq()), Flushed(id));
  }
  EXPECT_EQ(0, Post(client_qp_, Send(7)));
  EXPECT_THAT(Await(client().send_cq()), Flushed(7));
}

TEST_P(FlushTest, FlushesReadsThatHaveNotRun) {
  for (uint64_t id = 0; id < 30; ++id) {
    ASSERT_EQ(0, Post(client_qp_,
                      ReadWr(id, server_buffer_.addr(), server_buffer_.rkey())
                          .Sge(client_buffer_.sge())));
  }
  MoveToError(client().device(), client_qp_);
  bool flushed = false;
  for (uint64_t id = 0; id < 30; ++id) {
    const ibv_wc wc = Await(client().send_cq());
    EXPECT_EQ(wc.wr_id, id);
    // Some may have been done; none is after one that was not.
    EXPECT_TRUE(wc.status == IBV_WC_WR_FLUSH_ERR ||
                (wc.status == IBV_WC_SUCCESS && !flushed))
        << testing::PrintToString(wc);
    flushed = wc.status == IBV_WC_WR_FLUSH_ERR;
  }
}

// A peer that went to ERR answers no more: the sender's requests end in an
// error within a bounded time and not before some time.
TEST_P(FlushTest, RequestsToAPeerInErrorFail) {
  PostServerReceives(1, 8);
  MoveToError(server().device(), server_qp_);
  EXPECT_THAT(Await(server().recv_cq()), Flushed(1000));
  ASSERT_EQ(0, Post(client_qp_, Send(1)));
  const ibv_wc wc = Await(client().send_cq());
  EXPECT_EQ(wc.wr_id, 1u);
  EXPECT_NE(wc.status, IBV_WC_SUCCESS);
}

// Nothing succeeds behind what failed, even where it got there first.
TEST_P(FlushTest, NothingSucceedsBehindAFailure) {
  PostServerReceives(1, 8);
  Region far = server().Allocate(4096);
  ASSERT_FALSE(far.empty());
  const uint32_t key = far.rkey();
  WorkRequest requests[] = {
      ReadWr(1, far.addr(), key ^ 1).Sge(client_buffer_.sge(0, 8)), Send(2)};
  size_t posted = 0;
  // Nothing polls the client until the server has seen the SEND, if it does,
  // and answered.
  pump().Unwatch(client().send_cq());
  pump().Unwatch(client().recv_cq());
  ASSERT_EQ(0, PostList(client_qp_, absl::MakeSpan(requests), &posted));
  EXPECT_EQ(Await(server().recv_cq()).wr_id, 1000u);
  pump().Watch(client().send_cq());
  pump().Watch(client().recv_cq());
  EXPECT_THAT(Await(client().send_cq()), Failed(1, IBV_WC_REM_ACCESS_ERR));
  EXPECT_THAT(Await(client().send_cq()), Flushed(2));
}

// Completions that nobody polled go with the QP or stay; either way the CQ
// works on (IBTA 11.2.5.5).
TEST_P(FlushTest, DestroyingAQpLeavesItsCqUsable) {
  Link other;
  ASSERT_TRUE(Connect({}, &other));
  for (uint64_t id = 0; id < 5; ++id) {
    ASSERT_EQ(0, PostReceive(other.client, Receive(id)));
    ASSERT_EQ(0, Post(other.client, Send(id)));
  }
  client().DestroyQp(other.client);
  pump().TurnFor(pump().silence());
  PostServerReceives(1, 8);
  ASSERT_EQ(0, Post(client_qp_, Send(77)));
  ibv_wc wc;
  do {
    wc = Await(client().send_cq());
  } while (wc.wr_id != 77 && !HasFailure());
  EXPECT_THAT(wc, Succeeded(77));
}

}  // namespace
}  // namespace rdma::conformance
