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

#include "tests/conformance/completion_channel_fixture.h"

namespace rdma::conformance {
namespace {

class CompletionChannelTest : public CompletionChannelFixture {};
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

class SmallMessageEventTest : public CompletionChannelFixture {
 protected:
  LinkOptions Options() override { return {.client = {.max_inline_data = 64}}; }
};
CONFORMANCE_SUITE(SmallMessageEventTest);

// However many went before.
TEST_P(SmallMessageEventTest, AnArmedCqReportsEachOfMany) {
  for (uint32_t i = 0; i < 900; ++i) {
    SCOPED_TRACE(i);
    const size_t bytes = i % 5 < 2 ? 64 : 8;
    ASSERT_EQ(0, PostReceive(server_qp_,
                             {.wr_id = i, .sges = {server_buffer_.sge()}}));
    Arm(server().recv_cq());
    WorkRequest send = SendWr(i).Sge(client_buffer_.sge(0, bytes)).Inline();
    const bool is_signaled = i % 8 == 7;
    if (!is_signaled) send.Unsignaled();
    ASSERT_EQ(0, Post(client_qp_, send.Imm(htonl(i))));
    ASSERT_EQ(AwaitEvent(server()), server().recv_cq());
    ASSERT_THAT(PollOne(server().recv_cq()), Received(i, bytes));
    if (is_signaled) ASSERT_THAT(Await(client().send_cq()), Succeeded(i));
  }
}

// Longer than any device takes in at once.
TEST_P(CompletionChannelTest, AnArmedCqReportsALongMessage) {
  constexpr size_t kBytes = size_t{2} << 20;
  Region near = client().Allocate(kBytes);
  Region far = server().Allocate(kBytes);
  ASSERT_FALSE(near.empty() || far.empty());
  near.Fill(5);
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 1, .sges = {far.sge()}}));
  Arm(server().recv_cq());
  ASSERT_EQ(0, Post(client_qp_, SendWr(2).Sge(near.sge())));
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  EXPECT_THAT(PollOne(server().recv_cq()), Received(1, kBytes));
  EXPECT_TRUE(near.bytes(0, kBytes) == far.bytes(0, kBytes));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(2, IBV_WC_SEND));
}

// Behind more of the others than any device takes in at once.
TEST_P(CompletionChannelTest, ASolicitedMessageBehindManyOthersIsReported) {
  constexpr uint64_t kCount = 200;
  Link link;
  ASSERT_TRUE(Connect({.client = {.max_send_wr = kCount + 1},
                       .server = {.max_recv_wr = kCount + 1}},
                      &link));
  for (uint64_t id = 0; id <= kCount; ++id) {
    ASSERT_EQ(0, PostReceive(link.server, {.wr_id = id}));
  }
  Arm(server().recv_cq(), /*solicited_only=*/true);
  for (uint64_t id = 0; id < kCount; ++id) {
    ASSERT_EQ(0, Post(link.client, SendWr(id).Unsignaled()));
  }
  ASSERT_EQ(0, Post(link.client, SendWr(kCount).Solicited()));
  EXPECT_EQ(AwaitEvent(server()), server().recv_cq());
  for (uint64_t id = 0; id <= kCount; ++id) {
    EXPECT_THAT(PollOne(server().recv_cq()), Received(id, 0));
  }
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

// A CQ that holds completions already does not report them: poll again after
// arming. "Upon the addition of a new CQ entry".
TEST_P(CompletionChannelTest, ArmingReportsNoCompletionOfBefore) {
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 5}));
  ASSERT_EQ(0, PostReceive(server_qp_, {.wr_id = 6}));
  MoveToError(server().device(), server_qp_);
  // A device may flush in its own time, but then both.
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(5));
  pump().TurnFor(4 * pump().silence());
  Arm(server().recv_cq());
  ExpectNoEvent(server());
  EXPECT_THAT(PollOne(server().recv_cq()), Flushed(6));
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
