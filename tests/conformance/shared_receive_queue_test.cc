// Shared receive queues: one pool of receives for many QPs, its limit event,
// and what a QP's death leaves of it. Method: several connections into one SRQ.
// ibv_create_srq(3), ibv_post_srq_recv(3), ibv_modify_srq(3),
// ibv_get_async_event(3); IBTA 10.2.9.
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class SharedReceiveQueueTest : public ConformanceTest {
 protected:
  static constexpr uint32_t kDepth = 64;
  static constexpr size_t kSlot = 128;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
    if (server().device().attributes().max_srq == 0) {
      GTEST_SKIP() << "this device has no SRQs";
    }
    depth_ = kDepth;
    srq_ = server().CreateSrq(&depth_);
    ASSERT_NE(srq_, nullptr);
    near_ = client().Allocate(4096);
    slots_ = server().Allocate(kSlot * (depth_ + 1));
    ASSERT_FALSE(near_.empty() || slots_.empty());
    near_.Fill(1);
  }
  void TearDown() override {
    near_ = Region();
    slots_ = Region();
    ConformanceTest::TearDown();
  }

  [[nodiscard]] bool ConnectToSrq(Link* link) {
    return Connect({.server = {.srq = srq_}}, link);
  }

  ReceiveRequest Slot(uint64_t wr_id) {
    return {.wr_id = wr_id, .sges = {slots_.sge(wr_id * kSlot, kSlot)}};
  }
  void PostSlots(uint64_t first, uint64_t count) {
    for (uint64_t id = first; id < first + count; ++id) {
      ASSERT_EQ(0, PostReceive(srq_, Slot(id))) << id;
    }
  }
  void Send(const Link& link, uint64_t wr_id, size_t bytes = 16) {
    ASSERT_EQ(0, Post(link.client,
                      SendWr(wr_id).Sge(near_.sge(wr_id, bytes)).Unsignaled()));
  }

  int SetLimit(uint32_t limit) {
    ibv_srq_attr attr = {};
    attr.srq_limit = limit;
    return server().device().ModifySrq(srq_, &attr, IBV_SRQ_LIMIT);
  }

  uint32_t depth_ = 0;
  ibv_srq* srq_ = nullptr;
  Region near_;
  Region slots_;
};
CONFORMANCE_SUITE(SharedReceiveQueueTest);

TEST_P(SharedReceiveQueueTest, IsAtLeastAsDeepAsAsked) {
  EXPECT_GE(depth_, kDepth);
  ibv_srq_attr attr = {};
  ASSERT_EQ(0, server().device().QuerySrq(srq_, &attr));
  EXPECT_GE(attr.max_wr, depth_);
  EXPECT_GE(attr.max_sge, 4u);
  EXPECT_EQ(attr.srq_limit, 0u);
}

// In the order posted, whichever connection comes first; wc.qp_num tells which
// it was.
TEST_P(SharedReceiveQueueTest, ServesAllItsQpsInTheOrderPosted) {
  std::vector<Link> links(4);
  for (Link& link : links) ASSERT_TRUE(ConnectToSrq(&link));
  PostSlots(0, 40);
  for (uint64_t i = 0; i < 40; ++i) {
    const Link& link = links[(i * 7) % links.size()];
    Send(link, i);
    const ibv_wc wc = Await(server().recv_cq());
    ASSERT_THAT(wc, Received(i, 16));
    EXPECT_EQ(wc.qp_num, link.server->qp_num);
    EXPECT_EQ(slots_.bytes(i * kSlot, 16), near_.bytes(i, 16));
  }
}

TEST_P(SharedReceiveQueueTest, KeepsEachConnectionsOrderWhenAllSendAtOnce) {
  std::vector<Link> links(4);
  for (Link& link : links) ASSERT_TRUE(ConnectToSrq(&link));
  PostSlots(0, 40);
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_EQ(0, Post(links[i % 4].client,
                      SendWr(i).Imm(htonl(i / 4)).Inline().Unsignaled()));
  }
  std::map<uint32_t, uint32_t> next;
  for (uint64_t i = 0; i < 40; ++i) {
    const ibv_wc wc = Await(server().recv_cq());
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.imm_data, htonl(next[wc.qp_num]++));
  }
  for (const Link& link : links) EXPECT_EQ(next[link.server->qp_num], 10u);
}

TEST_P(SharedReceiveQueueTest, TakesAListAndNamesTheFirstRefused) {
  std::vector<ReceiveRequest> list;
  for (uint64_t id = 0; id < 5; ++id) list.push_back(Slot(id));
  for (uint32_t i = 0; i < 64; ++i) list[3].sges.push_back(slots_.sge(i, 1));
  size_t posted = 0;
  EXPECT_NE(0, PostReceiveList(srq_, list, &posted));
  EXPECT_EQ(posted, 3u);
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  for (uint64_t id = 0; id < 3; ++id) {
    Send(link, id);
    EXPECT_THAT(Await(server().recv_cq()), Received(id, 16));
  }
}

TEST_P(SharedReceiveQueueTest, RefusesMoreThanItHolds) {
  if (!deviations().exact_queue_depths) {
    GTEST_SKIP() << "this device takes more receives than it says";
  }
  std::vector<ReceiveRequest> list;
  for (uint64_t id = 0; id <= depth_; ++id) list.push_back(Slot(id));
  size_t posted = 0;
  EXPECT_EQ(ENOMEM, PostReceiveList(srq_, list, &posted));
  EXPECT_EQ(posted, depth_);
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  Send(link, 1);
  EXPECT_THAT(Await(server().recv_cq()), Received(0, 16));
  EXPECT_EQ(0, PostReceive(srq_, Slot(0)));
  EXPECT_EQ(ENOMEM, PostReceive(srq_, Slot(1)));
}

TEST_P(SharedReceiveQueueTest, ScattersOverSeveralPieces) {
  ASSERT_EQ(0, PostReceive(
                   srq_, {.wr_id = 1,
                          .sges = {slots_.sge(0, 10), slots_.sge(1000, 200)}}));
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  Send(link, 5, 100);
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 100));
  EXPECT_EQ(slots_.bytes(0, 10), near_.bytes(5, 10));
  EXPECT_EQ(slots_.bytes(1000, 90), near_.bytes(15, 90));
}

// An empty SRQ is a receiver that is not ready, as an empty receive queue is.
TEST_P(SharedReceiveQueueTest, MessagesWaitForReceives) {
  std::vector<Link> links(3);
  for (Link& link : links) ASSERT_TRUE(ConnectToSrq(&link));
  for (uint64_t i = 0; i < 9; ++i) Send(links[i % 3], i, 8 + i);
  ExpectSilence(server().recv_cq());
  // One receive lets one message in.
  PostSlots(0, 1);
  EXPECT_THAT(Await(server().recv_cq()), Succeeded(0, IBV_WC_RECV));
  ExpectSilence(server().recv_cq());
  PostSlots(1, 8);
  for (uint64_t id = 1; id < 9; ++id) {
    EXPECT_THAT(Await(server().recv_cq()), Succeeded(id, IBV_WC_RECV));
  }
}

TEST_P(SharedReceiveQueueTest, WriteWithImmediateTakesAReceive) {
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  PostSlots(3, 1);
  ASSERT_EQ(0, Post(link.client, WriteWr(1, slots_.addr(2000), slots_.rkey())
                                     .Sge(near_.sge(0, 50))
                                     .Imm(htonl(4))));
  EXPECT_THAT(Await(server().recv_cq()),
              Succeeded(3, IBV_WC_RECV_RDMA_WITH_IMM));
  EXPECT_EQ(slots_.bytes(2000, 50), near_.bytes(0, 50));
}

// "Modifying the srq_limit arms the SRQ to produce an
// IBV_EVENT_SRQ_LIMIT_REACHED ... event once the number of WRs in the SRQ drops
// below srq_limit."
TEST_P(SharedReceiveQueueTest, ReportsItsLimitOnceEachTimeItIsArmed) {
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  PostSlots(0, 10);
  ASSERT_EQ(0, SetLimit(8));
  ibv_srq_attr attr = {};
  ASSERT_EQ(0, server().device().QuerySrq(srq_, &attr));
  EXPECT_EQ(attr.srq_limit, 8u);

  // 10 receives, then 8: not below the limit yet.
  for (uint64_t id = 0; id < 2; ++id) {
    Send(link, id);
    EXPECT_THAT(Await(server().recv_cq()), Received(id, 16));
  }
  ExpectNoAsyncEvent(server().device());
  Send(link, 2);
  EXPECT_THAT(Await(server().recv_cq()), Received(2, 16));
  std::optional<ibv_async_event> event = AwaitAsyncEvent(server().device());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(event->element.srq, srq_);

  // It is one-shot: the limit is off now.
  Send(link, 3);
  EXPECT_THAT(Await(server().recv_cq()), Received(3, 16));
  ExpectNoAsyncEvent(server().device());

  ASSERT_EQ(0, SetLimit(5));
  Send(link, 4);
  EXPECT_THAT(Await(server().recv_cq()), Received(4, 16));
  ExpectNoAsyncEvent(server().device());
  Send(link, 5);
  EXPECT_THAT(Await(server().recv_cq()), Received(5, 16));
  event = AwaitAsyncEvent(server().device());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
}

// The event is one of the descriptor's: a program may sleep on it.
TEST_P(SharedReceiveQueueTest, TheLimitEventMakesTheDescriptorReadable) {
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  PostSlots(0, 3);
  ASSERT_EQ(0, SetLimit(3));
  pollfd descriptor = {.fd = server().device().context()->async_fd,
                       .events = POLLIN};
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
  Send(link, 0);
  EXPECT_THAT(Await(server().recv_cq()), Received(0, 16));
  EXPECT_TRUE(pump().Until([&] { return poll(&descriptor, 1, 0) == 1; },
                           "a readable async_fd"));
  EXPECT_TRUE(AwaitAsyncEvent(server().device()).has_value());
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
}

TEST_P(SharedReceiveQueueTest, RefusesALimitBeyondItsDepth) {
  EXPECT_NE(0, SetLimit(depth_ * 64 + 100000));
}

// A QP that dies takes no receive with it: the others go on with all of them.
TEST_P(SharedReceiveQueueTest, KeepsItsReceivesWhenAQpDies) {
  Link dying;
  Link living;
  ASSERT_TRUE(ConnectToSrq(&dying));
  ASSERT_TRUE(ConnectToSrq(&living));
  PostSlots(0, 4);
  MoveToError(server().device(), dying.server);
  ExpectSilence(server().recv_cq());
  for (uint64_t id = 0; id < 4; ++id) {
    Send(living, id);
    EXPECT_THAT(Await(server().recv_cq()), Received(id, 16));
  }
}

// IBTA 11.6.3.1: an SRQ's QP in ERR says when it will touch no receive any
// more.
TEST_P(SharedReceiveQueueTest, ADyingQpReportsItsLastReceive) {
  if (!deviations().reports_last_wqe) {
    GTEST_SKIP() << "this device reports no LAST_WQE_REACHED";
  }
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  PostSlots(0, 2);
  MoveToError(server().device(), link.server);
  const std::optional<ibv_async_event> event =
      AwaitAsyncEvent(server().device());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event->element.qp, link.server);
}

// "you must use ... ibv_post_srq_recv(), and not ibv_post_recv()".
TEST_P(SharedReceiveQueueTest, ItsQpsTakeNoReceivesOfTheirOwn) {
  Link link;
  ASSERT_TRUE(ConnectToSrq(&link));
  EXPECT_NE(0, PostReceive(link.server, Slot(0)));
}

TEST_P(SharedReceiveQueueTest, AMessageThatDoesNotFitBreaksItsConnectionAlone) {
  Link breaking;
  Link living;
  ASSERT_TRUE(ConnectToSrq(&breaking));
  ASSERT_TRUE(ConnectToSrq(&living));
  PostSlots(0, 2);
  Send(breaking, 1, kSlot + 1);
  const ibv_wc wc = Await(server().recv_cq());
  EXPECT_THAT(wc, Failed(0, deviations().receive_too_small_responder));
  EXPECT_EQ(wc.qp_num, breaking.server->qp_num);
  EXPECT_THAT(Await(client().send_cq()),
              Failed(1, deviations().receive_too_small_requester));
  Send(living, 2);
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 16));
}

TEST_P(SharedReceiveQueueTest, OutlivesItsQps) {
  for (int round = 0; round < 5; ++round) {
    Link link;
    ASSERT_TRUE(ConnectToSrq(&link));
    PostSlots(round, 1);
    Send(link, round);
    EXPECT_THAT(Await(server().recv_cq()), Received(round, 16));
    // Nobody asks for the events of the QPs that left.
    Disconnect(&link);
  }
}

}  // namespace
}  // namespace rdma::conformance
