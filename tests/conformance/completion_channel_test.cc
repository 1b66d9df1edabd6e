// Completion channels: an armed CQ reports the next completion once, through a
// descriptor that a program can sleep on. Method: arm or do not arm, make a
// completion, look for the event; where the test sleeps, it does so in poll(2)
// on the descriptor and drives nothing but the other end.
// ibv_req_notify_cq(3), ibv_get_cq_event(3), ibv_create_cq(3).
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <vector>

#include "tests/conformance/fixture.h"

namespace rdma::conformance {
namespace {

class CompletionChannelTest : public ConnectedTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectedTest::SetUp());
    Sleep(server());
  }

  // From now on nothing polls the side's CQs but the test itself.
  void Sleep(Side& side) {
    pump().Unwatch(side.send_cq());
    pump().Unwatch(side.recv_cq());
  }

  static void Arm(ibv_cq* cq, bool solicited_only = false) {
    ASSERT_EQ(0, ibv_req_notify_cq(cq, solicited_only ? 1 : 0));
  }

  // Sleeps on the channel until a CQ reports itself, drives the other end the
  // while, and acknowledges. Null and a failed test if patience ends.
  // REQUIRES: Sleep(side)
  ibv_cq* AwaitEvent(Side& side) {
    ibv_cq* found = nullptr;
    void* context = nullptr;
    pollfd descriptor = {.fd = side.channel()->fd, .events = POLLIN};
    pump().Unwatch(&side.manager());
    pump().Until(
        [&] {
          poll(&descriptor, 1, 1);
          return side.device().GetCqEvent(side.channel(), &found, &context) ==
                 0;
        },
        "a completion event");
    pump().Watch(&side.manager());
    if (found != nullptr) side.device().AckCqEvents(found, 1);
    return found;
  }

  void ExpectNoEvent(Side& side) {
    pump().TurnFor(pump().silence());
    ibv_cq* found = nullptr;
    void* context = nullptr;
    errno = 0;
    const int result =
        side.device().GetCqEvent(side.channel(), &found, &context);
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, EAGAIN);
    if (result == 0) side.device().AckCqEvents(found, 1);
  }

  ibv_wc PollOne(ibv_cq* cq) {
    ibv_wc wc = {};
    wc.wr_id = ~uint64_t{0};
    pump().Until([&] { return ibv_poll_cq(cq, 1, &wc) == 1; }, "a completion");
    return wc;
  }
  void ExpectEmpty(ibv_cq* cq) {
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  }

  void Send(uint64_t wr_id) {
    ASSERT_EQ(0,
              Post(client_qp_,
                   SendWr(wr_id).Sge(client_buffer_.sge(0, 8)).Unsignaled()));
  }
};
CONFORMANCE_SUITE(CompletionChannelTest);

TEST_P(CompletionChannelTest, HasNoEventAtFirst) {
  ExpectNoEvent(server());
  pollfd descriptor = {.fd = server().channel()->fd, .events = POLLIN};
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
}

TEST_P(CompletionChannelTest, ACqThatIsNotArmedIsSilent) {
  PostServerReceives(1, 8);
  Send(1);
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1000, 8));
  ExpectNoEvent(server());
}

TEST_P(CompletionChannelTest, AnArmedCqReportsAReceive) {
  PostServerReceives(1, 8);
  Arm(server().recv_cq());
  Send(1);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1000, 8));
}

TEST_P(CompletionChannelTest, AnArmedCqReportsALongMessage) {
  ASSERT_EQ(
      0, PostReceive(server_qp_, {.wr_id = 1, .sges = {server_buffer_.sge()}}));
  Arm(server().recv_cq());
  ASSERT_EQ(0, Post(client_qp_, SendWr(2).Sge(client_buffer_.sge())));
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1, kBufferBytes));
}

// "The request for notification is one shot."
TEST_P(CompletionChannelTest, ArmingIsForOneEvent) {
  PostServerReceives(3, 8);
  Arm(server().recv_cq());
  Send(1);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  Send(2);
  Send(3);
  for (uint64_t id = 1000; id < 1003; ++id) {
    EXPECT_THAT(PollOne(server().recv_cq()), Received(id, 8));
  }
  ExpectNoEvent(server());
}

TEST_P(CompletionChannelTest, ArmingTwiceIsArmingOnce) {
  PostServerReceives(2, 8);
  Arm(server().recv_cq());
  Arm(server().recv_cq());
  Send(1);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  Send(2);
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1000, 8));
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1001, 8));
  ExpectNoEvent(server());
}

// "An extra event may be triggered without having a corresponding completion
// entry": who polls first takes the completion; the event is still there, once.
TEST_P(CompletionChannelTest, PollingFirstDoesNotTakeTheEvent) {
  PostServerReceives(1, 8);
  Arm(server().recv_cq());
  Send(1);
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1000, 8));
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  ExpectEmpty(server().recv_cq());
  ExpectNoEvent(server());
}

// The loop of every event-driven program: arm, poll once more, sleep. Whenever
// the message comes, it is either polled or reported; none is slept through.
TEST_P(CompletionChannelTest, NothingIsLostBetweenArmingAndSleeping) {
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
  const auto discard_events = [&] {
    ibv_cq* found = nullptr;
    void* context = nullptr;
    while (server().device().GetCqEvent(server().channel(), &found, &context) ==
           0) {
      server().device().AckCqEvents(found, 1);
    }
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
    discard_events();
    if (round % 16 == 15) {
      EXPECT_THAT(Await(client().send_cq()), Succeeded(round));
    }
  }
}

// A CQ that holds completions already does not report them: poll again after
// arming. "Upon the addition of a new CQ entry".
TEST_P(CompletionChannelTest, ArmingReportsNoCompletionOfBefore) {
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 5}));
  MoveToError(server().device(), server_qp_);
  Arm(server().recv_cq());
  ExpectNoEvent(server());
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(5));
}

TEST_P(CompletionChannelTest, AnArmedCqReportsASend) {
  PostServerReceives(1, 8);
  pump().Watch(server().recv_cq());
  Sleep(client());
  Arm(client().send_cq());
  ASSERT_EQ(0, Post(client_qp_, SendWr(1).Sge(client_buffer_.sge(0, 8))));
  EXPECT_EQ(AwaitEvent(client()), client().send_cq());
  EXPECT_THAT(PollOne(client().send_cq()), Succeeded(1, IBV_WC_SEND));
}

TEST_P(CompletionChannelTest, AnUnsignaledSendIsNotReported) {
  PostServerReceives(1, 8);
  pump().Watch(server().recv_cq());
  Sleep(client());
  Arm(client().send_cq());
  Send(1);
  EXPECT_THAT(Await(server().recv_cq()), Received(1000, 8));
  ExpectNoEvent(client());
}

// The requester sleeps and polls nothing: its device works on.
TEST_P(CompletionChannelTest, AReadEndsWhileItsOwnerSleeps) {
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

TEST_P(CompletionChannelTest, AWriteAndABatchEndWhileTheirOwnerSleeps) {
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

TEST_P(CompletionChannelTest, AnArmedCqReportsTheFlush) {
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 5}));
  Arm(server().recv_cq());
  MoveToError(server().device(), server_qp_);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(5));
}

TEST_P(CompletionChannelTest, AnArmedCqReportsAPostToADeadQp) {
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
TEST_P(CompletionChannelTest, ADisconnectWakesTheSleeper) {
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

TEST_P(CompletionChannelTest, SolicitedOnlySleepsThroughTheRest) {
  PostServerReceives(3, 8);
  Arm(server().recv_cq(), /*solicited_only=*/true);
  Send(1);
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1000, 8));
  ExpectNoEvent(server());
  ASSERT_EQ(
      0,
      Post(client_qp_,
           SendWr(2).Sge(client_buffer_.sge(0, 8)).Solicited().Unsignaled()));
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1001, 8));
}

TEST_P(CompletionChannelTest, AWriteWithImmediateMaySolicit) {
  PostServerReceives(1, 8);
  Arm(server().recv_cq(), /*solicited_only=*/true);
  ASSERT_EQ(0, Post(client_qp_,
                    WriteWr(2, server_buffer_.addr(100), server_buffer_.rkey())
                        .Sge(client_buffer_.sge(0, 8))
                        .Imm(htonl(1))
                        .Solicited()));
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()),
              Succeeded(1000, IBV_WC_RECV_RDMA_WITH_IMM));
}

// "... or if the status is not successful."
TEST_P(CompletionChannelTest, AnErrorIsSolicited) {
  if (!deviations().solicited_wakes_on_error) {
    GTEST_SKIP() << "this device's errors do not wake a solicited-only CQ";
  }
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 5}));
  Arm(server().recv_cq(), /*solicited_only=*/true);
  MoveToError(server().device(), server_qp_);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(5));
}

// Arming for everything is not undone by arming for solicited ones afterwards
// (IBTA 11.4.2.2: the request for the next completion stays).
TEST_P(CompletionChannelTest, ArmingForAllOutweighsSolicitedOnly) {
  PostServerReceives(1, 8);
  Arm(server().recv_cq(), /*solicited_only=*/false);
  Arm(server().recv_cq(), /*solicited_only=*/true);
  Send(1);
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1000, 8));
}

// One channel reports each CQ by itself, with the context it was created with.
TEST_P(CompletionChannelTest, TellsItsCqsApart) {
  constexpr size_t kCount = 8;
  std::vector<ibv_cq*> cqs;
  std::vector<Link> links(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    cqs.push_back(server().CreateCq(16, server().channel(), &links[i]));
    ASSERT_NE(cqs.back(), nullptr);
    ASSERT_TRUE(Connect({.server = {.recv_cq = cqs.back()}}, &links[i]));
    ASSERT_EQ(0, PostReceive(links[i].server,
                             {.wr_id = i, .sges = {server_buffer_.sge(0, 8)}}));
    pump().Unwatch(cqs.back());
    Arm(cqs.back());
  }
  std::set<ibv_cq*> expected;
  for (size_t i = 0; i < kCount; i += 2) {
    expected.insert(cqs[i]);
    ASSERT_EQ(0,
              Post(links[i].client, SendWr(i).Sge(client_buffer_.sge(0, 8))));
  }
  std::set<ibv_cq*> reported;
  while (reported.size() < expected.size()) {
    ibv_cq* cq = AwaitEvent(server());
    ASSERT_NE(cq, nullptr);
    ASSERT_TRUE(reported.insert(cq).second) << "reported twice";
    EXPECT_EQ(cq->cq_context,
              &links[std::find(cqs.begin(), cqs.end(), cq) - cqs.begin()]);
  }
  EXPECT_EQ(reported, expected);
  ExpectNoEvent(server());
  for (size_t i = 0; i < kCount; i += 2) {
    EXPECT_THAT(PollOne(cqs[i]), Received(i, 8));
  }
}

// Several QPs of one CQ, and any of them wakes it.
TEST_P(CompletionChannelTest, AnyQpOfTheCqWakesIt) {
  std::vector<Link> links(5);
  for (Link& link : links) {
    ASSERT_TRUE(Connect({}, &link));
    ASSERT_EQ(0, PostReceive(link.server,
                             {.wr_id = 1, .sges = {server_buffer_.sge(0, 8)}}));
  }
  for (Link& link : links) {
    Arm(server().recv_cq());
    ASSERT_EQ(0, Post(link.client, SendWr(2).Sge(client_buffer_.sge(0, 8))));
    EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
    const ibv_wc wc = PollOne(server().recv_cq());
    EXPECT_THAT(wc, Received(1, 8));
    EXPECT_EQ(wc.qp_num, link.server->qp_num);
  }
}

// A CQ with no channel can be armed and says nothing to anybody.
TEST_P(CompletionChannelTest, ACqWithoutAChannelIsSilent) {
  ibv_cq* cq = server().CreateCq(16);
  ASSERT_NE(cq, nullptr);
  Link link;
  ASSERT_TRUE(Connect({.server = {.recv_cq = cq}}, &link));
  ibv_req_notify_cq(cq, 0);
  ASSERT_EQ(0, PostReceive(link.server,
                           {.wr_id = 1, .sges = {server_buffer_.sge(0, 8)}}));
  ASSERT_EQ(0, Post(link.client, SendWr(2).Sge(client_buffer_.sge(0, 8))));
  EXPECT_THAT(Await(cq), Received(1, 8));
  ExpectNoEvent(server());
}

}  // namespace
}  // namespace rdma::conformance
