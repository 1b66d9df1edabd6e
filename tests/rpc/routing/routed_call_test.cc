// Goal: a call reaches its end once, in order and whole, on whichever transport
// and however the attempts before went.
// Method: transports that do as the test says, at every point of a call.
#include "rpc/routing/routed_call.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/routing/kept_frame.h"
#include "tests/rpc/routing/fake_transports.h"

namespace rpc::routing {
namespace {

using State = ConnectivityState;
using Texts = std::vector<std::string>;

const absl::Status kBroken = absl::UnavailableError("broken");

class RoutedCallTest : public ::testing::Test {
 protected:
  RoutedCallTest() : RoutedCallTest(RoutingOptions()) {}
  explicit RoutedCallTest(const RoutingOptions& options)
      : fakes_(2), routing_(fakes_.Route(options)) {}

  void MakeReady(size_t index) { fakes_[index].SetState(State::kReady); }
  // The first is lost, and the second ready.
  void Move() {
    fakes_[0].SetState(State::kTransientFailure, "lost");
    fakes_[1].SetState(State::kReady);
  }
  CallHandle Start(OutgoingFrame frame, const CallOptions& options = {}) {
    return routing_->StartCall(options, std::move(frame), &sink_);
  }

  FakeTransports fakes_;
  FakeSink sink_;
  std::unique_ptr<ClientTransport> routing_;
};

TEST_F(RoutedCallTest, WaitsForATransportAndIsAnsweredThere) {
  Start(Message("request"));
  EXPECT_EQ(fakes_[0].connects(), 1);
  EXPECT_EQ(fakes_[1].connects(), 0);
  MakeReady(0);
  FakeCall& call = fakes_[0].WaitForCall(0);
  EXPECT_EQ(call.options.method, 101u);  // of that transport
  EXPECT_EQ(call.frames, (std::vector<SentFrame>{{"", "request", 0, true}}));
  Answer(call, "response");
  EXPECT_TRUE(sink_.WaitForEnd().status.ok());
  EXPECT_EQ(sink_.messages(), Texts{"response"});
}

TEST_F(RoutedCallTest, TellsWhichPeerAnswered) {
  MakeReady(0);
  Start(Message("request"));
  FakeCall& first = fakes_[0].WaitForCall(0);
  fakes_[1].SetState(State::kReady);
  Move();
  Break(first, kBroken, /*may_have_run=*/false);
  FakeCall& second = fakes_[1].WaitForCall(0);
  EXPECT_EQ(sink_.peer(), "");
  Answer(second, "response");
  sink_.WaitForEnd();
  EXPECT_EQ(sink_.peer(), "fake:1");
}

TEST_F(RoutedCallTest, TellsWhichPeerFailedIt) {
  MakeReady(0);
  Start(Message("request"));
  Fail(fakes_[0].WaitForCall(0), 5);
  sink_.WaitForEnd();
  EXPECT_EQ(sink_.codes(), std::vector<uint32_t>{5});
  EXPECT_EQ(sink_.peer(), "fake:0");
}

TEST_F(RoutedCallTest, TellsWhichPeerWasLost) {
  MakeReady(0);
  Start(Message("request"));
  Break(fakes_[0].WaitForCall(0), kBroken, /*may_have_run=*/true);
  sink_.WaitForEnd();
  EXPECT_EQ(sink_.peer(), "fake:0");
}

TEST_F(RoutedCallTest, IsAnsweredWithinStartCall) {
  MakeReady(0);
  fakes_[0].OnNextStart([](FakeCall& call) { Answer(call, "response"); });
  Start(Message("request"));
  EXPECT_TRUE(sink_.is_over());
}

// Those of the first call.
NextWait NextWaitOf(FakeTransport& fake) {
  return fake.WaitForCall(0).options.next_wait;
}

TEST_F(RoutedCallTest, AThreadThatWaitsAtOnceSaysSoWhereItWillWait) {
  MakeReady(0);
  Start(Message("request"), {.next_wait = NextWait::kAtOnce});
  EXPECT_EQ(NextWaitOf(fakes_[0]), NextWait::kAtOnce);
  Answer(fakes_[0].WaitForCall(0), "response");
}

TEST_F(RoutedCallTest, AThreadThatWaitsAtOnceDoesSoInTheFirstTransportOnly) {
  Move();
  Start(Message("request"), {.next_wait = NextWait::kAtOnce});
  EXPECT_EQ(NextWaitOf(fakes_[1]), NextWait::kUnknown);
  Answer(fakes_[1].WaitForCall(0), "response");
}

TEST_F(RoutedCallTest, AThreadThatBeginsForAnotherDoesNotWaitAtOnce) {
  Start(Message("request"), {.next_wait = NextWait::kAtOnce});
  MakeReady(0);
  EXPECT_EQ(NextWaitOf(fakes_[0]), NextWait::kUnknown);
  Answer(fakes_[0].WaitForCall(0), "response");
}

TEST_F(RoutedCallTest, AnyThreadBeginsForGuests) {
  Start(Message("request"), {.next_wait = NextWait::kAsGuest});
  MakeReady(0);
  EXPECT_EQ(NextWaitOf(fakes_[0]), NextWait::kAsGuest);
  Answer(fakes_[0].WaitForCall(0), "response");
}

TEST_F(RoutedCallTest, FailsWhereAllTransportsDo) {
  fakes_[0].SetState(State::kTransientFailure, "no way");
  fakes_[1].SetState(State::kTransientFailure, "no way either");
  Start(Message("request"));
  const CallOutcome outcome = sink_.WaitForEnd();
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(outcome.status.message().find("no way"), std::string_view::npos)
      << outcome.status;
  EXPECT_FALSE(outcome.may_have_run);
}

TEST_F(RoutedCallTest, WaitsForOneToBeReadyWhereItIsTo) {
  fakes_[0].SetState(State::kTransientFailure, "no way");
  fakes_[1].SetState(State::kTransientFailure, "no way either");
  Start(Message("request"), {.wait_for_ready = WaitForReady::kYes});
  MakeReady(1);
  Answer(fakes_[1].WaitForCall(0), "response");
  EXPECT_TRUE(sink_.WaitForEnd().status.ok());
}

TEST_F(RoutedCallTest, EndsAtItsDeadlineWhileItWaits) {
  Start(Message("request"), {.deadline = absl::Now() + absl::Milliseconds(20)});
  EXPECT_EQ(sink_.WaitForEnd().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  MakeReady(0);
  FakeSink late;
  routing_->StartCall({.deadline = absl::Now() - absl::Seconds(1)},
                      Message("late"), &late);
  EXPECT_EQ(late.WaitForEnd().status.code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(fakes_[0].calls(), 0u);
}

TEST_F(RoutedCallTest, IsCancelledWhileItWaits) {
  const CallHandle handle = Start(Message("request"));
  routing_->Cancel(handle, absl::CancelledError("enough"));
  const CallOutcome outcome = sink_.WaitForEnd();
  EXPECT_EQ(outcome.status, absl::CancelledError("enough"));
  EXPECT_FALSE(outcome.may_have_run);
  routing_->Cancel(handle, absl::CancelledError("again"));
  EXPECT_FALSE(routing_->Send(handle, Message("late")));
  MakeReady(0);
  EXPECT_EQ(fakes_[0].calls(), 0u);
}

TEST_F(RoutedCallTest, IsCancelledWhereItRuns) {
  MakeReady(0);
  const CallHandle handle = Start(Message("request"));
  routing_->Cancel(handle, absl::CancelledError("enough"));
  EXPECT_EQ(sink_.WaitForEnd().status, absl::CancelledError("enough"));
  EXPECT_EQ(fakes_[0].WaitForCall(0).cancelled.size(), 1u);
}

TEST_F(RoutedCallTest, IsCancelledWhileItIsStarted) {
  const CallHandle handle = Start(Message("request"));
  fakes_[0].OnNextStart([&](FakeCall&) {
    routing_->Cancel(handle, absl::CancelledError("enough"));
  });
  MakeReady(0);
  EXPECT_EQ(sink_.WaitForEnd().status, absl::CancelledError("enough"));
}

TEST_F(RoutedCallTest, FramesFollowInOrderWheneverTheyCome) {
  const CallHandle handle = Start(Message("0", false));
  EXPECT_FALSE(routing_->Send(handle, Message("1", false)));
  fakes_[0].OnNextStart(
      [&](FakeCall&) { routing_->Send(handle, Message("2", false)); });
  MakeReady(0);
  fakes_[0].WaitForCall(0, 3);
  routing_->Send(handle, Message("3", true));
  FakeCall& call = fakes_[0].WaitForCall(0, 4);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(call.frames[i].message, std::to_string(i));
    EXPECT_EQ(call.frames[i].end, i == 3);
  }
  Answer(call, "response");
  sink_.WaitForEnd();
}

TEST_F(RoutedCallTest, WhatDidNotRunMovesToAnotherTransportWhole) {
  MakeReady(0);
  const CallHandle handle = Start(Message("0", false));
  routing_->Send(handle, Message("1", false));
  FakeCall& first = fakes_[0].WaitForCall(0, 2);
  first.sink->OnSent();
  first.sink->OnSent();
  Move();
  Break(first, kBroken, /*may_have_run=*/false);
  FakeCall& second = fakes_[1].WaitForCall(0, 2);
  EXPECT_EQ(second.frames, first.frames);
  // The user has heard of those already.
  second.sink->OnSent();
  second.sink->OnSent();
  EXPECT_EQ(sink_.sent(), 2);
  routing_->Send(handle, Message("2", false));
  fakes_[1].WaitForCall(0, 3);
  second.sink->OnSent();
  EXPECT_EQ(sink_.sent(), 3);
  Answer(second, "response");
  EXPECT_TRUE(sink_.WaitForEnd().status.ok());
}

TEST_F(RoutedCallTest, AttachmentsAreSharedAndLetGoOf) {
  MakeReady(0);
  const Buffer attachment = Buffer::FromHeap(100);
  OutgoingFrame frame = Message("request");
  frame.attachment = BufferChain(attachment);
  Start(std::move(frame));
  Move();
  Break(fakes_[0].WaitForCall(0), kBroken, false);
  FakeCall& second = fakes_[1].WaitForCall(0);
  EXPECT_EQ(second.frames[0].attachment_bytes, 100u);
  EXPECT_FALSE(attachment.block()->unique());
  Answer(second, "response");
  sink_.WaitForEnd();
  EXPECT_TRUE(attachment.block()->unique());
}

TEST_F(RoutedCallTest, WhatMayHaveRunIsNotRepeated) {
  MakeReady(0);
  Start(Message("request"));
  MakeReady(1);
  Break(fakes_[0].WaitForCall(0), kBroken, /*may_have_run=*/true);
  const CallOutcome outcome = sink_.WaitForEnd();
  EXPECT_EQ(outcome.status, kBroken);
  EXPECT_TRUE(outcome.may_have_run);
  EXPECT_EQ(fakes_[1].calls(), 0u);
}

TEST_F(RoutedCallTest, AnAttemptMayFailWithinStartCallManyTimes) {
  MakeReady(0);
  int failures = 0;
  std::function<void(FakeCall&)> fail = [&](FakeCall& call) {
    if (++failures < 5) fakes_[0].OnNextStart(fail);
    Break(call, kBroken, false);
  };
  fakes_[0].OnNextStart(fail);
  Start(Message("request"));
  Answer(fakes_[0].WaitForCall(5), "response");
  EXPECT_TRUE(sink_.WaitForEnd().status.ok());
  EXPECT_EQ(failures, 5);
}

TEST_F(RoutedCallTest, NothingIsRepeatedOnceAResponseCame) {
  MakeReady(0);
  Start(Message("0", false));
  FakeCall& call = fakes_[0].WaitForCall(0);
  IncomingFrame frame;
  frame.has_message = true;
  frame.message = BufferChain(Buffer::CopyOf("a response"));
  call.sink->OnFrame(frame);
  Move();
  Break(call, kBroken, /*may_have_run=*/false);
  EXPECT_EQ(sink_.WaitForEnd().status, kBroken);
  EXPECT_EQ(fakes_[1].calls(), 0u);
}

TEST_F(RoutedCallTest, AnErrorOfTheServersArrivesWithItsHeader) {
  MakeReady(0);
  Start(Message("request"));
  Fail(fakes_[0].WaitForCall(0), 5);
  EXPECT_TRUE(sink_.WaitForEnd().may_have_run);
  EXPECT_EQ(sink_.codes(), std::vector<uint32_t>{5});
}

TEST_F(RoutedCallTest, OnceCommittedFramesJustPassThrough) {
  fakes_[0].SetSentAtOnce();
  MakeReady(0);
  const CallHandle handle = Start(Message("0", false));
  FakeCall& call = fakes_[0].WaitForCall(0);
  OutgoingFrame kept = Message("1", false);
  kept.sent_by_result = true;
  EXPECT_FALSE(routing_->Send(handle, std::move(kept)));
  IncomingFrame frame;
  frame.has_message = true;
  call.sink->OnFrame(frame);
  OutgoingFrame passed = Message("2", false);
  passed.sent_by_result = true;
  EXPECT_TRUE(routing_->Send(handle, std::move(passed)));
  EXPECT_EQ(call.frames.size(), 3u);
  Answer(call, "response");
  sink_.WaitForEnd();
}

TEST_F(RoutedCallTest, WindowsGoBackToTheAttempt) {
  MakeReady(0);
  CallHandle handle;
  fakes_[0].OnNextStart([&](FakeCall&) {
    // The handle is not known to the user yet, either; as if it were.
    routing_->Release({1}, 10, false);
  });
  handle = Start(Message("0", false));
  EXPECT_EQ(handle, CallHandle{1});
  routing_->Release(handle, 20, false);
  FakeCall& call = fakes_[0].WaitForCall(0);
  EXPECT_EQ(call.released_bytes, 30u);
  Answer(call, "response");
  sink_.WaitForEnd();
}

TEST_F(RoutedCallTest, AChannelThatEndsEndsWhatWaits) {
  Start(Message("request"));
  routing_.reset();
  EXPECT_EQ(sink_.WaitForEnd().status.code(), absl::StatusCode::kCancelled);
}

class SmallBufferTest : public RoutedCallTest {
 protected:
  // For two frames of 8 bytes.
  SmallBufferTest()
      : RoutedCallTest({.retry_buffer_bytes = 2 * (sizeof(KeptFrame) + 8)}) {}

  // How many attempts it takes where the first ends before it runs.
  size_t AttemptsOf(const std::vector<std::string>& texts) {
    MakeReady(0);
    const CallHandle handle = Start(Message(texts[0], false));
    for (size_t i = 1; i < texts.size(); ++i) {
      routing_->Send(handle, Message(texts[i], false));
    }
    FakeCall& call = fakes_[0].WaitForCall(0, texts.size());
    Move();
    Break(call, kBroken, false);
    if (sink_.is_over()) return 1;
    Answer(fakes_[1].WaitForCall(0, texts.size()), "response");
    return 1 + fakes_[1].calls();
  }
};

TEST_F(SmallBufferTest, WhoeverSentNoMoreIsRepeated) {
  EXPECT_EQ(AttemptsOf({"01234567", "89abcdef"}), 2u);
}

TEST_F(SmallBufferTest, WhoeverSentManyEmptyMessagesIsNotRepeated) {
  EXPECT_EQ(AttemptsOf({"", "", "", ""}), 1u);
}

TEST_F(SmallBufferTest, WhoeverSentMoreIsNotRepeated) {
  MakeReady(0);
  const CallHandle handle = Start(Message("01234567", false));
  routing_->Send(handle, Message("89ab", false));
  routing_->Send(handle, Message("cdef", false));
  FakeCall& call = fakes_[0].WaitForCall(0, 3);
  Move();
  Break(call, kBroken, false);
  EXPECT_EQ(sink_.WaitForEnd().status, kBroken);
  EXPECT_EQ(fakes_[1].calls(), 0u);
}

TEST_F(SmallBufferTest, WhatWaitsIsSentAllTheSame) {
  const CallHandle handle = Start(Message("01234567", false));
  routing_->Send(handle, Message("89ab", false));
  routing_->Send(handle, Message("cdef", true));
  MakeReady(0);
  FakeCall& call = fakes_[0].WaitForCall(0, 3);
  EXPECT_EQ(call.frames[1].message, "89ab");
  Answer(call, "response");
  EXPECT_TRUE(sink_.WaitForEnd().status.ok());
}

class NoRetriesTest : public RoutedCallTest {
 protected:
  NoRetriesTest() : RoutedCallTest({.retries = false}) {}
};

TEST_F(NoRetriesTest, NothingIsRepeated) {
  MakeReady(0);
  Start(Message("request"));
  MakeReady(1);
  Break(fakes_[0].WaitForCall(0), kBroken, false);
  EXPECT_EQ(sink_.WaitForEnd().status, kBroken);
}

TEST_F(NoRetriesTest, NothingIsKept) {
  fakes_[0].SetSentAtOnce();
  MakeReady(0);
  const Buffer attachment = Buffer::FromHeap(100);
  OutgoingFrame first = Message("0", false);
  first.attachment = BufferChain(attachment);
  const CallHandle handle = Start(std::move(first));
  EXPECT_TRUE(attachment.block()->unique());
  OutgoingFrame second = Message("1", true);
  second.sent_by_result = true;
  EXPECT_TRUE(routing_->Send(handle, std::move(second)));
  FakeCall& call = fakes_[0].WaitForCall(0, 2);
  EXPECT_EQ(call.frames[0].attachment_bytes, 100u);
  Answer(call, "response");
  EXPECT_TRUE(sink_.WaitForEnd().status.ok());
  EXPECT_EQ(sink_.messages(), Texts{"response"});
}

TEST_F(NoRetriesTest, WhatWaitsForATransportIsSentThere) {
  const CallHandle handle = Start(Message("0", false));
  routing_->Send(handle, Message("1", true));
  MakeReady(0);
  FakeCall& call = fakes_[0].WaitForCall(0, 2);
  EXPECT_EQ(call.frames[1].message, "1");
  Fail(call, 5);
  sink_.WaitForEnd();
  EXPECT_EQ(sink_.codes(), std::vector<uint32_t>{5});
}

// For the sanitizers.
TEST_F(RoutedCallTest, CancellingEndsACallWhateverHappensMeanwhile) {
  std::atomic<bool> stop = false;
  std::thread network([&] {
    for (int i = 0; !stop; ++i) {
      for (const size_t index : {0, 1}) {
        fakes_[index].OnNextStart(
            [](FakeCall& call) { Break(call, kBroken, false); });
        const bool fails = (i + index) % 3 == 0;
        fakes_[index].SetState(fails ? State::kTransientFailure : State::kReady,
                               fails ? "gone" : "");
      }
      absl::SleepFor(absl::Microseconds(100));
    }
  });
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        FakeSink sink;
        const CallHandle handle = routing_->StartCall(
            {.deadline = absl::Now() + absl::Milliseconds(1 + i % 3),
             .wait_for_ready = WaitForReady::kYes},
            Message("0", false), &sink);
        routing_->Send(handle, Message("1", false));
        absl::SleepFor(absl::Microseconds(i % 7 * 100));
        routing_->Cancel(handle, absl::CancelledError("enough"));
        sink.WaitForEnd();
      }
    });
  }
  for (std::thread& user : users) user.join();
  stop = true;
  network.join();
}

}  // namespace
}  // namespace rpc::routing
