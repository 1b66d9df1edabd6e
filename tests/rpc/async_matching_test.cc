// Goal: calls, and those who asked for them, meet first come, first served; a
// call that goes while it waits leaves the others where they are. Method: a
// transport on whose calls everything happens on the test's stack, so that what
// came is there.
#include <deque>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"
#include "tests/rpc/queue_events.h"

namespace rpc::testing {
namespace {

struct Asked {
  ServerContext context;
  SayRequest request;
  ServerAsyncResponseWriter<SayResponse> responder{&context};
};

struct Made {
  ClientContext context;
  SayResponse response;
  Status status{StatusCode::DATA_LOSS, "it was never set"};
};

class AsyncMatchingTest : public ::testing::Test {
 protected:
  // So many calls of a method may wait.
  static constexpr size_t kMayWait = 3;

  // Tags of calls are 0, 1, ... on either side.
  enum : int { kFinish = 100, kDone };

  AsyncMatchingTest()
      : echo_({}, &service_, {},
              [this](ServerBuilder& builder) {
                queue_ = builder.AddCompletionQueue();
                builder.AddChannelArgument("verbena.handler_queue",
                                           int{kMayWait});
              }),
        served_(std::make_unique<QueueEvents>(queue_.get())) {}
  ~AsyncMatchingTest() override { EndServer(); }

  // Every request is answered by then.
  void EndServer() {
    echo_.server().Shutdown();
    queue_->Shutdown();
    EXPECT_TRUE(served_->IsOver());
  }

  void Ask(Asked& asked, int number) {
    service_.RequestSay(&asked.context, &asked.request, &asked.responder,
                        queue_.get(), queue_.get(), Tag(number));
  }
  // Its text is its number.
  void Make(Made& made, int number) {
    SayRequest request;
    request.set_text(std::to_string(number));
    echo_.stub()
        .AsyncSay(&made.context, request, made_.queue())
        ->Finish(&made.response, &made.status, Tag(number));
  }
  // Answers what came to one that asked.
  void Answer(Asked& asked) {
    SayResponse response;
    response.set_text(asked.request.text());
    asked.responder.Finish(response, Status::OK, Tag(kFinish));
    EXPECT_TRUE(served_->Comes(kFinish));
  }
  // The same with the one who asks, for the call of this number.
  void AskAndAnswer(int number) {
    Asked asked;
    Ask(asked, number);
    ASSERT_TRUE(served_->Comes(number));
    EXPECT_EQ(asked.request.text(), std::to_string(number));
    Answer(asked);
    EXPECT_TRUE(made_.Comes(number));
  }

  Echo::AsyncService service_;
  std::unique_ptr<ServerCompletionQueue> queue_;
  EchoServer echo_;
  const std::unique_ptr<QueueEvents> served_;
  QueueEvents made_;
};

TEST_F(AsyncMatchingTest, TheFirstToAskIsAnsweredFirst) {
  std::deque<Asked> asked(5);
  for (int i = 0; i < 5; ++i) Ask(asked[static_cast<size_t>(i)], i);
  EXPECT_TRUE(served_->NothingCame());
  for (int i = 0; i < 5; ++i) {
    Made made;
    Make(made, i);
    EXPECT_TRUE(served_->Comes(i));
    EXPECT_EQ(asked[static_cast<size_t>(i)].request.text(), std::to_string(i));
    Answer(asked[static_cast<size_t>(i)]);
    EXPECT_TRUE(made_.Comes(i));
    EXPECT_TRUE(made.status.ok()) << made.status;
    EXPECT_EQ(made.response.text(), std::to_string(i));
  }
}

TEST_F(AsyncMatchingTest, TheFirstCallIsGivenFirst) {
  std::deque<Made> made(kMayWait);
  for (int i = 0; i < 3; ++i) Make(made[static_cast<size_t>(i)], i);
  EXPECT_TRUE(made_.NothingCame());
  for (int i = 0; i < 3; ++i) AskAndAnswer(i);
  for (const Made& each : made) EXPECT_TRUE(each.status.ok()) << each.status;
}

TEST_F(AsyncMatchingTest, OnlySoManyCallsWait) {
  std::deque<Made> made(6);
  for (int i = 0; i < 3; ++i) Make(made[static_cast<size_t>(i)], i);
  EXPECT_TRUE(made_.NothingCame());
  Make(made[3], 3);
  EXPECT_TRUE(made_.Comes(3));
  EXPECT_EQ(made[3].status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(absl::StrContains(made[3].status.error_message(),
                                "verbena.handler_queue"))
      << made[3].status;
  // There is room where one was asked for, and where one went.
  AskAndAnswer(0);
  Make(made[4], 4);
  made[1].context.TryCancel();
  EXPECT_TRUE(made_.Comes(1));
  Make(made[5], 5);
  EXPECT_TRUE(made_.NothingCame());
  for (const int number : {2, 4, 5}) AskAndAnswer(number);
}

TEST_F(AsyncMatchingTest, EachMethodHasItsOwn) {
  Made waiting;
  Make(waiting, 0);
  Made other;
  echo_.stub()
      .AsyncOther(&other.context, SayRequest(), made_.queue())
      ->Finish(&other.response, &other.status, Tag(1));
  Asked asked;
  service_.RequestOther(&asked.context, &asked.request, &asked.responder,
                        queue_.get(), queue_.get(), Tag(1));
  EXPECT_TRUE(served_->Comes(1));
  Answer(asked);
  EXPECT_TRUE(made_.Comes(1));
  EXPECT_TRUE(made_.NothingCame());
  AskAndAnswer(0);
}

// ---- Calls that go while they wait.

TEST_F(AsyncMatchingTest, ACallThatIsCancelledWaitsNoMore) {
  std::deque<Made> made(3);
  for (int i = 0; i < 3; ++i) Make(made[static_cast<size_t>(i)], i);
  made[1].context.TryCancel();
  EXPECT_TRUE(made_.Comes(1));
  EXPECT_EQ(made[1].status.error_code(), StatusCode::CANCELLED);
  AskAndAnswer(0);
  AskAndAnswer(2);
}

TEST_F(AsyncMatchingTest, CallsThatAreCutOffWaitNoMore) {
  std::deque<Made> made(3);
  for (int i = 0; i < 2; ++i) Make(made[static_cast<size_t>(i)], i);
  echo_.network().DropConnections();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(made_.Comes(i));
    EXPECT_EQ(made[static_cast<size_t>(i)].status.error_code(),
              StatusCode::UNAVAILABLE);
  }
  Asked asked;
  Ask(asked, 2);
  EXPECT_TRUE(served_->NothingCame());
  Make(made[2], 2);
  EXPECT_TRUE(served_->Comes(2));
  EXPECT_EQ(asked.request.text(), "2");
  Answer(asked);
  EXPECT_TRUE(made_.Comes(2));
}

// It is known by then who gets it.
TEST_F(AsyncMatchingTest, ACallCanBeCancelledBeforeItsEventIsTaken) {
  for (const bool first : {false, true}) {
    Asked asked;
    asked.context.AsyncNotifyWhenDone(Tag(kDone));
    Made made;
    if (first) Ask(asked, 0);
    Make(made, 0);
    if (!first) Ask(asked, 0);
    made.context.TryCancel();
    EXPECT_TRUE(made_.Comes(0));
    EXPECT_TRUE(served_->Comes(0));
    EXPECT_TRUE(served_->Comes(kDone));
    EXPECT_TRUE(asked.context.IsCancelled());
    asked.responder.Finish(SayResponse(), Status::OK, Tag(kFinish));
    EXPECT_TRUE(served_->Comes(kFinish, false));
    EXPECT_TRUE(asked.context.IsCancelled());
  }
}

// ---- Calls that cannot be read.

TEST_F(AsyncMatchingTest, ACallThatCannotBeReadIsGivenToNobody) {
  for (const bool first : {false, true}) {
    Asked asked;
    if (first) Ask(asked, 1);
    Made forged;
    echo_.network().ReplaceNextRequest(
        {.has_message = true, .message = "\xff", .end = true});
    Make(forged, 0);
    if (!first) Ask(asked, 1);
    EXPECT_TRUE(made_.NothingCame());
    EXPECT_TRUE(served_->NothingCame());
    EXPECT_TRUE(made_.Comes(0));
    EXPECT_EQ(forged.status.error_code(), StatusCode::INTERNAL)
        << forged.status;
    Made good;
    Make(good, 1);
    EXPECT_TRUE(served_->Comes(1));
    EXPECT_EQ(asked.request.text(), "1");
    Answer(asked);
    EXPECT_TRUE(made_.Comes(1));
  }
}

// The request is not forgotten, though it cannot be repeated.
TEST_F(AsyncMatchingTest, WhoAskedHearsOfTheQueuesEnd) {
  Asked asked;
  Ask(asked, 1);
  Made forged;
  echo_.network().ReplaceNextRequest(
      {.has_message = true, .message = "\xff", .end = true});
  Make(forged, 0);
  queue_->Shutdown();
  EXPECT_TRUE(served_->Comes(1, false));
  EXPECT_TRUE(served_->IsOver());
  EXPECT_TRUE(made_.Comes(0));
}

// ---- The server's end.

TEST_F(AsyncMatchingTest, WhoAskedHearsOfTheServersEnd) {
  std::deque<Asked> asked(4);
  for (int i = 0; i < 3; ++i) Ask(asked[static_cast<size_t>(i)], i);
  echo_.server().Shutdown();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(served_->Comes(i, false));
  Ask(asked[3], 3);
  EXPECT_TRUE(served_->Comes(3, false));
}

TEST_F(AsyncMatchingTest, CallsThatWaitEndWithTheServer) {
  std::deque<Made> made(3);
  for (int i = 0; i < 3; ++i) Make(made[static_cast<size_t>(i)], i);
  echo_.server().Shutdown();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(made_.Comes(i));
    EXPECT_EQ(made[static_cast<size_t>(i)].status.error_code(),
              StatusCode::UNAVAILABLE);
  }
  Asked asked;
  Ask(asked, 4);
  EXPECT_TRUE(served_->Comes(4, false));
}

// It is somebody's by then, who takes it and finishes it when he likes.
TEST_F(AsyncMatchingTest, CallsInTheQueueOutliveTheServersEnd) {
  Asked asked;
  asked.context.AsyncNotifyWhenDone(Tag(kDone));
  Ask(asked, 0);
  Made made;
  Make(made, 0);
  echo_.server().Shutdown(absl::Now());
  EXPECT_TRUE(made_.Comes(0));
  EXPECT_FALSE(made.status.ok());
  EXPECT_TRUE(served_->Comes(0));
  EXPECT_TRUE(served_->Comes(kDone));
  EXPECT_TRUE(asked.context.IsCancelled());
  asked.responder.Finish(SayResponse(), Status::OK, Tag(kFinish));
  EXPECT_TRUE(served_->Comes(kFinish, false));
}

TEST_F(AsyncMatchingTest, NobodyAsksByAQueueThatIsShutDown) {
  Asked asked;
  queue_->Shutdown();
  Ask(asked, 0);
  EXPECT_TRUE(served_->IsOver());
  Made made;
  Make(made, 0);
  EXPECT_TRUE(made_.NothingCame());
  echo_.server().Shutdown();
  EXPECT_TRUE(made_.Comes(0));
  EXPECT_EQ(made.status.error_code(), StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace rpc::testing
