// Completion queues: how many completions a poll returns, one queue for several
// QPs and for both directions, and an overrun. Method: known numbers of
// completions. ibv_poll_cq(3), ibv_create_cq(3), ibv_get_async_event(3).
#include <map>
#include <optional>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class CompletionQueueTest : public ConformanceTest {
 protected:
  static constexpr int kDepth = 16;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConformanceTest::SetUp());
    cq_ = client().CreateCq(kDepth);
    ASSERT_NE(cq_, nullptr);
  }

  // Sends nothing but an immediate, from the server to the client.
  void SendTo(const Link& link, uint32_t imm) {
    ASSERT_EQ(0, Post(link.server, SendWr(imm).Imm(htonl(imm)).Inline()));
  }

  ibv_cq* cq_ = nullptr;
};
CONFORMANCE_SUITE(CompletionQueueTest);

// "Returns the first num_entries (or all available completions if the CQ
// contains fewer than this number)".
TEST_P(CompletionQueueTest, ReturnsNoMoreThanAskedFor) {
  constexpr uint64_t kCount = 10;
  Link link;
  ASSERT_TRUE(Connect({.client = {.recv_cq = cq_}}, &link));
  for (uint64_t id = 0; id < kCount; ++id) {
    ASSERT_EQ(0, PostReceive(link.client, {.wr_id = id}));
  }
  pump().Unwatch(cq_);
  MoveToError(client().device(), link.client);
  pump().TurnFor(4 * pump().silence());
  ibv_wc wc[kDepth];
  EXPECT_EQ(ibv_poll_cq(cq_, 0, wc), 0);
  uint64_t next = 0;
  const auto poll = [&](int most) {
    const int polled = ibv_poll_cq(cq_, most, wc);
    EXPECT_LE(polled, most);
    for (int i = 0; i < polled; ++i) EXPECT_THAT(wc[i], Flushed(next++));
    return polled;
  };
  const int few = poll(3);
  const int rest = poll(kDepth);
  if (deviations().flushes_soon) {
    EXPECT_EQ(few, 3);
    EXPECT_EQ(rest, 7);
  }
  pump().Until([&] { return poll(kDepth) == 0 && next >= kCount; },
               "flushed receives");
  EXPECT_EQ(next, kCount);
}

// One completion a poll, as many a consumer does, with receives that wait all
// the time.
TEST_P(CompletionQueueTest, ASendCompletesThoughEachPollIsFullOfReceives) {
  constexpr uint32_t kReceives = 60;
  constexpr uint64_t kSend = 1000;
  ibv_cq* const cq = client().CreateCq(2 * kReceives);
  Link link;
  ASSERT_TRUE(Connect({.client = {.send_cq = cq, .recv_cq = cq}}, &link));
  pump().Unwatch(cq);
  Region to = client().Allocate(4096);
  Region from = server().Allocate(4096);
  ASSERT_FALSE(to.empty() || from.empty());
  for (uint64_t id = 0; id < kReceives; ++id) {
    ASSERT_EQ(0, PostReceive(link.client, {.wr_id = id, .sges = {to.sge()}}));
  }
  ASSERT_EQ(0, PostReceive(link.server, {.wr_id = 1, .sges = {from.sge()}}));
  ASSERT_EQ(0,
            Post(link.client, SendWr(kSend).Sge(to.sge(0, 8)).Imm(1).Inline()));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 8));
  for (uint64_t id = 0; id < kReceives; ++id) {
    ASSERT_EQ(
        0, Post(link.server,
                SendWr(id).Sge(from.sge(0, 8)).Imm(1).Inline().Unsignaled()));
  }
  pump().TurnFor(4 * pump().silence());
  uint32_t received = 0;
  ibv_wc wc = {};
  while (wc.wr_id != kSend && received < kReceives) {
    if (ibv_poll_cq(cq, 1, &wc) == 0) {
      pump().TurnFor(pump().silence());
      continue;
    }
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    received += wc.opcode == IBV_WC_RECV;
  }
  EXPECT_LT(received, kReceives / 2);
}

// Both queues of several QPs in one CQ: wc.qp_num and wc.opcode tell them
// apart.
TEST_P(CompletionQueueTest, ServesSendsAndReceivesOfSeveralQps) {
  constexpr uint32_t kLinks = 3;
  std::vector<Link> links(kLinks);
  std::map<uint32_t, uint32_t> received;
  std::map<uint32_t, uint32_t> sent;
  for (Link& link : links) {
    ASSERT_TRUE(Connect({.client = {.send_cq = cq_, .recv_cq = cq_}}, &link));
  }
  for (uint32_t round = 0; round < 20; ++round) {
    for (Link& link : links) {
      ASSERT_EQ(0, PostReceive(link.client, {.wr_id = 1000 + round}));
      ASSERT_EQ(0, PostReceive(link.server, {.wr_id = 1000 + round}));
      SendTo(link, round);
      ASSERT_EQ(0, Post(link.client, SendWr(round)));
    }
    for (const ibv_wc& wc : Await(cq_, 2 * kLinks)) {
      if ((wc.opcode & IBV_WC_RECV) != 0) {
        EXPECT_THAT(wc, Received(1000 + round, 0));
        ++received[wc.qp_num];
      } else {
        EXPECT_THAT(wc, Succeeded(round, IBV_WC_SEND));
        ++sent[wc.qp_num];
      }
    }
  }
  for (const Link& link : links) {
    EXPECT_EQ(received[link.client->qp_num], 20u);
    EXPECT_EQ(sent[link.client->qp_num], 20u);
  }
}

// "ibv_resize_cq() resizes the completion queue": what is in it stays.
TEST_P(CompletionQueueTest, AResizedQueueKeepsItsCompletionsAndHasRoomForMore) {
  constexpr uint32_t kMore = 100;
  Link link;
  ASSERT_TRUE(
      Connect({.client = {.max_recv_wr = kMore, .recv_cq = cq_}}, &link));
  for (uint64_t id = 0; id < kMore; ++id) {
    ASSERT_EQ(0, PostReceive(link.client, {.wr_id = id}));
  }
  for (uint32_t i = 0; i < kDepth; ++i) SendTo(link, i);
  ASSERT_THAT(Await(cq_), Received(0, 0));
  EXPECT_EQ(0, client().device().ResizeCq(cq_, kMore));
  EXPECT_GE(cq_->cqe, static_cast<int>(kMore));
  for (uint32_t i = 1; i < kDepth; ++i) {
    ASSERT_THAT(Await(cq_), Received(i, 0));
  }
  pump().Unwatch(cq_);
  MoveToError(client().device(), link.client);
  // A device may flush in its own time.
  pump().TurnFor(4 * pump().silence());
  pump().Watch(cq_);
  for (uint32_t i = kDepth; i < kMore; ++i) {
    ASSERT_THAT(Await(cq_), Flushed(i));
  }
}

// "In case of a CQ overrun, the async event IBV_EVENT_CQ_ERR will be triggered,
// and the CQ cannot be used." What holds is that nothing else breaks.
TEST_P(CompletionQueueTest, AnOverrunIsReportedAndHurtsNobodyElse) {
  if (!deviations().exact_queue_depths) {
    GTEST_SKIP() << "this device makes queues deeper than it says";
  }
  const uint32_t too_many = cq_->cqe + 1;
  Link breaking;
  Link living;
  ASSERT_TRUE(Connect({.client = {.max_recv_wr = too_many, .recv_cq = cq_}},
                      &breaking));
  ASSERT_TRUE(Connect({}, &living));
  pump().Unwatch(cq_);
  for (uint32_t id = 0; id < too_many; ++id) {
    ASSERT_EQ(0, PostReceive(breaking.client, {.wr_id = id}));
  }
  MoveToError(client().device(), breaking.client);
  const std::optional<ibv_async_event> event =
      AwaitAsyncEvent(client().device());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->event_type, IBV_EVENT_CQ_ERR);
  EXPECT_EQ(event->element.cq, cq_);

  ASSERT_EQ(0, PostReceive(living.client, {.wr_id = 5}));
  SendTo(living, 6);
  EXPECT_THAT(Await(client().recv_cq()), Received(5, 0));
  // And all of it can be destroyed.
  client().DestroyQp(breaking.client);
  client().DestroyCq(cq_);
}

}  // namespace
}  // namespace rdma::conformance
