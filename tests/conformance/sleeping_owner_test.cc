// A program that sleeps on its completion channel: its device works on, and it
// is woken by all that it waits for. Method: arm, sleep in poll(2), and drive
// nothing but the other end. ibv_req_notify_cq(3), ibv_get_cq_event(3).
#include <poll.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "tests/conformance/completion_channel_fixture.h"

namespace rdma::conformance {
namespace {

class SleepingOwnerTest : public CompletionChannelFixture {};
CONFORMANCE_SUITE(SleepingOwnerTest);

// The loop of every event-driven program: arm, poll once more, sleep. Whenever
// the message comes, it is either polled or reported; none is slept through.
TEST_P(SleepingOwnerTest, NothingIsLostBetweenArmingAndSleeping) {
  ibv_cq* cq = server().recv_cq();
  PostServerReceives(1, 8);
  // Takes the one message of a round, if it is there.
  const auto take = [&](uint64_t round) {
    ibv_wc wc;
    if (ibv_poll_cq(cq, 1, &wc) == 0) return false;
    EXPECT_THAT(wc, Succeeded(round == 0 ? 1000 : round - 1, IBV_WC_RECV));
    EXPECT_EQ(wc.imm_data, htonl(round));
    EXPECT_EQ(0, PostReceive(server_qp_, {.wr_id = round}));
    return true;
  };
  for (uint64_t round = 0; round < 3000 && !HasFailure(); ++round) {
    const auto send = [&] {
      WorkRequest request = SendWr(round).Imm(htonl(round)).Inline();
      if (round % 16 != 15) request.Unsignaled();
      ASSERT_EQ(0, Post(client_qp_, request));
    };
    // Before arming, between arming and the last poll, or after it: in turn.
    if (round % 3 == 0) send();
    Arm(cq);
    if (round % 3 == 1) send();
    bool taken = take(round);
    if (round % 3 == 2) send();
    while (!taken && AwaitEvent(server()) != nullptr) taken = take(round);
    EXPECT_TRUE(taken);
    DiscardEvents(server());
    if (round % 16 == 15) {
      EXPECT_THAT(Await(client().send_cq()), Succeeded(round));
    }
  }
}

// The same with more QPs than any device looks at each time: the message comes
// by one that was silent for long, at every point of the loop.
TEST_P(SleepingOwnerTest, NothingIsLostOnAnyOfManyQps) {
  ibv_cq* cq = server().recv_cq();
  const size_t count = TheProviderUnderTest().many_connections;
  std::vector<Link> links(count);
  for (size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(Connect({.client = {.max_send_wr = 8, .max_recv_wr = 1},
                         .server = {.max_send_wr = 1, .max_recv_wr = 2}},
                        &links[i]));
    ASSERT_EQ(0, PostReceive(links[i].server, {.wr_id = i}));
  }
  for (size_t round = 0; round < 10 * count && !HasFailure(); ++round) {
    // A stride that has no factor in common with the rounds' three cases.
    const Link& link = links[(round * 7 + round / count) % count];
    ibv_wc wc = {};
    const auto send = [&] {
      ASSERT_EQ(0, Post(link.client, SendWr(round).Imm(htonl(round)).Inline()));
    };
    if (round % 3 == 0) send();
    Arm(cq);
    if (round % 3 == 1) send();
    bool taken = ibv_poll_cq(cq, 1, &wc) == 1;
    if (round % 3 == 2) send();
    while (!taken && AwaitEvent(server()) != nullptr) {
      taken = ibv_poll_cq(cq, 1, &wc) == 1;
    }
    ASSERT_TRUE(taken) << "round " << round;
    EXPECT_EQ(wc.imm_data, htonl(round));
    EXPECT_EQ(wc.qp_num, link.server->qp_num);
    ASSERT_EQ(0, PostReceive(link.server, {.wr_id = round}));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(round));
    DiscardEvents(server());
  }
}

// A message that is on its way when its receiver arms, polls and sleeps, and is
// longer than any device takes in at once.
TEST_P(SleepingOwnerTest, ALongMessageOfBeforeTheArmingIsReported) {
  constexpr size_t kBytes = size_t{4} << 20;
  Region near = client().Allocate(kBytes);
  Region far = server().Allocate(kBytes);
  ASSERT_FALSE(near.empty() || far.empty());
  near.Fill(5);
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 1, .sges = {far.sge()}}));
  ASSERT_EQ(0, Post(client_qp_, SendWr(2).Sge(near.sge()).Unsignaled()));
  Arm(server().recv_cq());
  ibv_wc wc = {};
  if (ibv_poll_cq(server().recv_cq(), 1, &wc) == 0) {
    EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
    wc = PollOne(server().recv_cq());
  }
  EXPECT_THAT(wc, Received(1, kBytes));
  EXPECT_TRUE(near.bytes(0, kBytes) == far.bytes(0, kBytes));
}

// What the peer sends as soon as it accepted is here before the connection is.
TEST_P(SleepingOwnerTest, AMessageOfBeforeTheConnectionIsReported) {
  // With nothing else to be told of when it connects.
  client_buffer_ = Region();
  server_buffer_ = Region();
  absl::StatusOr<CmId*> listener =
      server().manager().Listen(ServerAddress(), 16, nullptr);
  ASSERT_TRUE(listener.ok()) << listener.status();
  // A QP takes receives of its own from INIT on, which it may reach only when
  // the answer is here; an SRQ takes them at any time.
  uint32_t depth = 1;
  ibv_srq* srq = client().CreateSrq(&depth);
  ASSERT_NE(srq, nullptr);
  ibv_qp* near = client().CreateQp({.srq = srq});
  ibv_qp* far = server().CreateQp({});
  ASSERT_TRUE(near != nullptr && far != nullptr);
  ASSERT_EQ(0, PostReceive(srq, {.wr_id = 1}));
  ASSERT_TRUE(client()
                  .manager()
                  .Connect((*listener)->local_address(), near,
                           {.rnr_retry_count = 7}, pump().patience(), nullptr)
                  .ok());
  Sleep(client());
  const std::optional<CmEvent> request = pump().Await(&server().manager());
  ASSERT_TRUE(request.has_value());
  // From here on the client's side of the connection is looked at by nobody.
  pump().Unwatch(&client().manager());
  ASSERT_TRUE(
      server().manager().Accept(request->id, far, PatientParameters()).ok());
  ASSERT_EQ(0, Post(far, SendWr(2)));
  Arm(client().recv_cq());
  ExpectEmpty(client().recv_cq());
  // The client sleeps, and wakes for its connection alone.
  pump().Watch(&client().manager());
  const std::optional<CmEvent> event = pump().Await(&client().manager());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, CmEvent::Type::kEstablished);
  EXPECT_EQ(AwaitEvent(client()), client().recv_cq());
  EXPECT_THAT(PollOne(client().recv_cq()), Received(1, 0));
}

// Posting is no reason to forget what came meanwhile, be it the first READ of
// memory that this end has not seen yet.
TEST_P(SleepingOwnerTest, AMessageIsReportedAlthoughAReadCameBetween) {
  Sleep(client());
  ASSERT_EQ(0, PostReceive(client_qp_, {.wr_id = 1}));
  Region far = server().Allocate(4096);
  ASSERT_FALSE(far.empty());
  Arm(client().recv_cq());
  ExpectEmpty(client().recv_cq());
  ASSERT_EQ(0, Post(server_qp_, SendWr(2)));
  ASSERT_EQ(0, Post(client_qp_, ReadWr(3, far.addr(), far.rkey())
                                    .Sge(client_buffer_.sge(0, 64))
                                    .Unsignaled()));
  EXPECT_EQ(AwaitEvent(client()), client().recv_cq());
  EXPECT_THAT(PollOne(client().recv_cq()), Received(1, 0));
}

TEST_P(SleepingOwnerTest, AnArmedCqReportsASend) {
  PostServerReceives(1, 8);
  pump().Watch(server().recv_cq());
  Sleep(client());
  Arm(client().send_cq());
  ASSERT_EQ(0, Post(client_qp_, SendWr(1).Sge(client_buffer_.sge(0, 8))));
  EXPECT_EQ(AwaitEvent(client()), client().send_cq());
  EXPECT_THAT(PollOne(client().send_cq()), Succeeded(1, IBV_WC_SEND));
}

TEST_P(SleepingOwnerTest, AnUnsignaledSendIsNotReported) {
  PostServerReceives(1, 8);
  pump().Watch(server().recv_cq());
  Sleep(client());
  Arm(client().send_cq());
  Send(1);
  EXPECT_THAT(Await(server().recv_cq()), Received(1000, 8));
  ExpectNoEvent(client());
}

// A program that waits for an answer is woken by the answer alone, not by the
// acknowledgement of its request before, whatever it waited for earlier.
TEST_P(SleepingOwnerTest, AnAcknowledgementThatNobodyWaitsForWakesNobody) {
  PostServerReceives(2, 8);
  pump().Watch(server().recv_cq());
  ASSERT_EQ(0, Post(client_qp_, SendWr(1).Sge(client_buffer_.sge(0, 8))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(1, IBV_WC_SEND));
  EXPECT_THAT(Await(server().recv_cq()), Received(1000, 8));
  Sleep(client());
  Arm(client().send_cq());
  ExpectEmpty(client().send_cq());
  DiscardEvents(client());
  Send(2);
  EXPECT_THAT(Await(server().recv_cq()), Received(1001, 8));
  pump().TurnFor(pump().silence());
  pollfd descriptor = {.fd = client().channel()->fd, .events = POLLIN};
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
}

// The requester sleeps and polls nothing: its device works on.
TEST_P(SleepingOwnerTest, AReadEndsWhileItsOwnerSleeps) {
  const size_t bytes =
      std::min<size_t>(TheProviderUnderTest().largest_message_bytes, 8 << 20);
  Region near = client().Allocate(bytes);
  Region far = server().Allocate(bytes);
  ASSERT_FALSE(near.empty() || far.empty());
  far.Fill(3);
  Sleep(client());
  Arm(client().send_cq());
  ASSERT_EQ(
      0, Post(client_qp_, ReadWr(1, far.addr(), far.rkey()).Sge(near.sge())));
  EXPECT_EQ(AwaitEvent(client()), client().send_cq());
  EXPECT_THAT(PollOne(client().send_cq()), Succeeded(1, IBV_WC_RDMA_READ));
  EXPECT_TRUE(near.bytes(0, bytes) == far.bytes(0, bytes));
}

TEST_P(SleepingOwnerTest, AWriteAndABatchEndWhileTheirOwnerSleeps) {
  Sleep(client());
  Arm(client().send_cq());
  for (uint64_t id = 0; id < 20; ++id) {
    WorkRequest write =
        WriteWr(id, server_buffer_.addr(), server_buffer_.rkey())
            .Sge(client_buffer_.sge(0, 30000));
    if (id < 19) write.Unsignaled();
    ASSERT_EQ(0, Post(client_qp_, write));
  }
  EXPECT_EQ(AwaitEvent(client()), client().send_cq());
  EXPECT_THAT(PollOne(client().send_cq()), Succeeded(19, IBV_WC_RDMA_WRITE));
}

TEST_P(SleepingOwnerTest, AnArmedCqReportsTheFlush) {
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 5}));
  Arm(server().recv_cq());
  MoveToError(server().device(), server_qp_);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(5));
}

TEST_P(SleepingOwnerTest, AnArmedCqReportsAPostToADeadQp) {
  if (!deviations().flushes_receives_posted_in_error) {
    GTEST_SKIP() << "this device keeps receives that are posted in ERR";
  }
  MoveToError(server().device(), server_qp_);
  Arm(server().recv_cq());
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 6}));
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(6));
}

// The sleeper hears of the end of its connection although no message comes.
TEST_P(SleepingOwnerTest, ADisconnectWakesTheSleeper) {
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 7}));
  Arm(server().recv_cq());
  client().manager().Disconnect(link_.client_id);
  const std::optional<CmEvent> event = pump().Await(&server().manager());
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->type, CmEvent::Type::kDisconnected);
  server().manager().Disconnect(link_.server_id);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(7));
}

}  // namespace
}  // namespace rdma::conformance
