// Goal: however a call of an asynchronous service ends, who asked for it hears
// of it as in gRPC, and the client gets a status: finished, cancelled, past its
// deadline, forgotten, or met by the server's end. Method: one thread is both
// the client and the server; another one shuts down.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/async_server_fixture.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/parcels.h"
#include "tests/rpc/queue_events.h"

namespace e2e {
namespace {

using rpc::testing::Tag;

class AsyncServerEndsTest : public AsyncServerFixture<Parcels::AsyncService> {
 protected:
  using ClientChat = rpc::ClientAsyncReaderWriter<Parcel, Parcel>;

  // Server's tags, and the client's.
  enum : int { kAsked = 1, kRead, kWrite, kFinish, kDone };
  enum : int { kStart = 11, kRecv, kEnd };

  // A chat that has begun on either side.
  std::unique_ptr<ClientChat> Open(rpc::ClientContext* context,
                                   AskedChat& asked) {
    Ask(asked, Tag(kAsked));
    std::unique_ptr<ClientChat> stream =
        stub_->AsyncChat(context, made_.queue(), Tag(kStart));
    EXPECT_TRUE(made_.Comes(kStart));
    EXPECT_TRUE(served().Comes(kAsked));
    return stream;
  }
  template <class Stream>
  rpc::Status EndOf(Stream& stream) {
    rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
    stream.Finish(&status, Tag(kEnd));
    EXPECT_TRUE(made_.Comes(kEnd));
    return status;
  }
  // Ends a call that nobody waits for any more.
  void FinishInVain(AskedChat& asked) {
    asked.responder.Finish(rpc::Status::OK, Tag(kFinish));
    EXPECT_TRUE(served().Comes(kFinish, false));
    EXPECT_TRUE(asked.context.IsCancelled());
  }
};

// ---- AsyncNotifyWhenDone.

TEST_F(AsyncServerEndsTest, ACallThatIsFinishedIsDone) {
  for (const rpc::StatusCode code :
       {rpc::StatusCode::OK, rpc::StatusCode::ABORTED}) {
    AskedUnary asked;
    asked.context.AsyncNotifyWhenDone(Tag(kDone));
    Ask(asked, Tag(kAsked));
    MadeUnary made;
    Make(made, Parcel(), Tag(kEnd));
    ASSERT_TRUE(served().Comes(kAsked));
    EXPECT_TRUE(served().NothingCame());
    asked.responder.Finish(Parcel(), rpc::Status(code, ""), Tag(kFinish));
    EXPECT_TRUE(served().Comes(kDone));
    EXPECT_FALSE(asked.context.IsCancelled());
    EXPECT_TRUE(served().Comes(kFinish));
    EXPECT_FALSE(asked.context.IsCancelled());
    EXPECT_TRUE(made_.Comes(kEnd));
    EXPECT_TRUE(HasCode(made.status, code));
  }
}

TEST_F(AsyncServerEndsTest, ACallThatIsCancelledIsDone) {
  AskedChat asked;
  asked.context.AsyncNotifyWhenDone(Tag(kDone));
  TimedContext context;
  const auto stream = Open(&context, asked);
  Parcel request;
  asked.responder.Read(&request, Tag(kRead));
  EXPECT_TRUE(served().NothingCame());
  EXPECT_FALSE(asked.context.IsCancelled());
  context.TryCancel();
  EXPECT_TRUE(served().Comes(kDone));
  EXPECT_TRUE(asked.context.IsCancelled());
  EXPECT_TRUE(served().Comes(kRead, false));
  asked.responder.Write(Parcel(), Tag(kWrite));
  EXPECT_TRUE(served().Comes(kWrite, false));
  FinishInVain(asked);
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::CANCELLED));
}

TEST_F(AsyncServerEndsTest, ACallThatIsCancelledNeedsNoFinish) {
  TimedContext context;
  std::optional<AskedChat> asked(std::in_place);
  asked->context.AsyncNotifyWhenDone(Tag(kDone));
  const auto stream = Open(&context, *asked);
  context.TryCancel();
  EXPECT_TRUE(served().Comes(kDone));
  EXPECT_TRUE(asked->context.IsCancelled());
  asked.reset();
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::CANCELLED));
}

TEST_F(AsyncServerEndsTest, ACallPastItsDeadlineIsDone) {
  AwaitArrival();  // over a connection, whose making takes its time
  AskedChat asked;
  asked.context.AsyncNotifyWhenDone(Tag(kDone));
  Ask(asked, Tag(kAsked));
  // Short, and long enough to arrive.
  TimedContext context(absl::Milliseconds(500));
  const auto stream = stub_->AsyncChat(&context, made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  ASSERT_TRUE(served().Comes(kAsked));
  EXPECT_TRUE(served().Comes(kDone));
  EXPECT_TRUE(asked.context.IsCancelled());
  FinishInVain(asked);
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::DEADLINE_EXCEEDED));
}

TEST_F(AsyncServerEndsTest, AServerCanCancel) {
  AskedChat asked;
  asked.context.AsyncNotifyWhenDone(Tag(kDone));
  TimedContext context;
  const auto stream = Open(&context, asked);
  asked.context.TryCancel();
  EXPECT_TRUE(served().Comes(kDone));
  FinishInVain(asked);
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::CANCELLED));
}

// As in gRPC.
TEST_F(AsyncServerEndsTest, ACallThatNeverCameIsNotDone) {
  AskedUnary asked;
  asked.context.AsyncNotifyWhenDone(Tag(kDone));
  Ask(asked, Tag(kAsked));
  server().Shutdown();
  EXPECT_TRUE(served().Comes(kAsked, false));
  queue_->Shutdown();
  EXPECT_TRUE(served().IsOver());
}

TEST_F(AsyncServerEndsTest, CancellingIsSeenWithoutBeingTold) {
  AskedChat asked;
  TimedContext context;
  const auto stream = Open(&context, asked);
  EXPECT_FALSE(asked.context.IsCancelled());
  Parcel request;
  asked.responder.Read(&request, Tag(kRead));
  context.TryCancel();
  EXPECT_TRUE(served().Comes(kRead, false));
  EXPECT_TRUE(asked.context.IsCancelled());
  FinishInVain(asked);
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::CANCELLED));
}

// ---- Contexts that go.

TEST_F(AsyncServerEndsTest, AContextThatGoesCancelsItsCall) {
  {
    std::optional<AskedUnary> asked(std::in_place);
    Ask(*asked, Tag(kAsked));
    MadeUnary made;
    Make(made, Parcel(), Tag(kEnd));
    ASSERT_TRUE(served().Comes(kAsked));
    EXPECT_TRUE(made_.NothingCame());
    asked.reset();
    EXPECT_TRUE(made_.Comes(kEnd));
    EXPECT_TRUE(HasCode(made.status, rpc::StatusCode::CANCELLED));
  }
  for (const bool after_reading : {false, true}) {
    std::optional<AskedChat> asked(std::in_place);
    TimedContext context;
    const auto stream = Open(&context, *asked);
    if (after_reading) {
      stream->Write(Parcel(), Tag(kRecv));
      EXPECT_TRUE(made_.Comes(kRecv));
      Parcel request;
      asked->responder.Read(&request, Tag(kRead));
      EXPECT_TRUE(served().Comes(kRead));
    }
    asked.reset();
    EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::CANCELLED));
  }
}

TEST_F(AsyncServerEndsTest, AContextMayServeAnotherRequestsMemory) {
  // At the same place each time: what is left of one call must not reach into
  // the next.
  for (int i = 0; i < 20; ++i) {
    AskedUnary asked;
    Ask(asked, Tag(kAsked));
    MadeUnary made;
    Make(made, ParcelFor(i), Tag(kEnd));
    ASSERT_TRUE(served().Comes(kAsked));
    EXPECT_EQ(asked.request.responses(), i);
    if (i % 2 == 0) {
      asked.responder.Finish(asked.request, rpc::Status::OK, Tag(kFinish));
      EXPECT_TRUE(served().Comes(kFinish));
      EXPECT_TRUE(made_.Comes(kEnd));
      EXPECT_OK(made.status);
    } else {
      made.context.TryCancel();
      EXPECT_TRUE(made_.Comes(kEnd));
    }
  }
}

// ---- What a context says after its last event.

// Of who made the call; what it held at first stays valid.
class ContextAfterItsCallTest : public AsyncServerEndsTest {
 protected:
  // Its channel has metadata for all of its calls.
  void SetUp() override {
    AsyncServerEndsTest::SetUp();
    rpc::ChannelArguments arguments;
    arguments.SetString("verbena.device", TheDeviceUnderTest().client_device);
    arguments.SetUserAgentPrefix("test");
    stub_ = Parcels::NewStub(rpc::CreateCustomChannel(
        server_->address(), rpc::InsecureChannelCredentials(), arguments));
  }
  void Note(const rpc::ServerContext& context) {
    peer_ = context.peer();
    EXPECT_NE(peer_, "");
    authority_ = context.ExperimentalGetAuthority();
    EXPECT_NE(authority_, "");
    metadata_ = &context.client_metadata();
    EXPECT_EQ(metadata_->count("user-agent"), 1u);
  }
  void ExpectTheSameOf(const rpc::ServerContext& context) {
    EXPECT_EQ(context.peer(), peer_);
    EXPECT_EQ(context.ExperimentalGetAuthority(), authority_);
    EXPECT_EQ(&context.client_metadata(), metadata_);
    EXPECT_EQ(metadata_->count("user-agent"), 1u);
  }

 private:
  std::string peer_;
  rpc::string_ref authority_;
  const rpc::ReceivedMetadataMap* metadata_ = nullptr;
};

TEST_F(ContextAfterItsCallTest, IsAsBeforeFinish) {
  // With metadata of the call's own, and without.
  for (const bool with_metadata : {false, true}) {
    AskedUnary asked;
    Ask(asked, Tag(kAsked));
    MadeUnary made;
    if (with_metadata) made.context.AddMetadata("from", "client");
    Make(made, Parcel(), Tag(kEnd));
    ASSERT_TRUE(served().Comes(kAsked));
    Note(asked.context);
    asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(kFinish));
    EXPECT_TRUE(served().Comes(kFinish));
    ExpectTheSameOf(asked.context);
    EXPECT_TRUE(made_.Comes(kEnd));
    EXPECT_OK(made.status);
  }
}

TEST_F(ContextAfterItsCallTest, IsAsBeforeCancelling) {
  AskedChat asked;
  asked.context.AsyncNotifyWhenDone(Tag(kDone));
  TimedContext context;
  const auto stream = Open(&context, asked);
  Note(asked.context);
  context.TryCancel();
  EXPECT_TRUE(served().Comes(kDone));
  ExpectTheSameOf(asked.context);
  FinishInVain(asked);
  ExpectTheSameOf(asked.context);
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::CANCELLED));
}

TEST_F(ContextAfterItsCallTest, IsAsBeforeTheServersEnd) {
  AskedUnary asked;
  Ask(asked, Tag(kAsked));
  MadeUnary made;
  Make(made, Parcel(), Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  Note(asked.context);
  asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  server().Shutdown();
  ExpectTheSameOf(asked.context);
}

// The end comes within the other thread's Next: the thread sanitizer sees where
// it changes the context.
TEST_F(ContextAfterItsCallTest, MayBeAskedByAnotherThreadMeanwhile) {
  AskedUnary asked;
  Ask(asked, Tag(kAsked));
  MadeUnary made;
  Make(made, Parcel(), Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  std::atomic<bool> over{false};
  absl::Notification asking;
  std::thread watchdog([&] {
    while (!over) {
      EXPECT_FALSE(asked.context.IsCancelled());
      if (!asking.HasBeenNotified()) asking.Notify();
    }
    asked.context.TryCancel();
  });
  asking.WaitForNotification();
  asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  over = true;
  watchdog.join();
  EXPECT_OK(made.status);
}

// ---- The server's end.

TEST_F(AsyncServerEndsTest, WhoAskedHearsOfTheServersEnd) {
  AskedUnary unary;
  AskedUpload upload;
  AskedDownload download;
  AskedChat chat;
  Ask(unary, Tag(1));
  Ask(upload, Tag(2));
  Ask(download, Tag(3));
  Ask(chat, Tag(4));
  server().Shutdown();
  for (const int number : {1, 2, 3, 4}) {
    EXPECT_TRUE(served().Comes(number, false));
  }
  Ask(upload, Tag(5));
  EXPECT_TRUE(served().Comes(5, false));
  EXPECT_FALSE(upload.context.IsCancelled());
}

TEST_F(AsyncServerEndsTest, CallsThatNobodyAskedForEndWithTheServer) {
  TimedContext context;
  const auto stream = stub_->AsyncChat(&context, made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  MadeUnary made;
  Make(made, Parcel(), Tag(kRecv));
  AwaitArrival();
  EXPECT_TRUE(made_.NothingCame());
  server().Shutdown();
  EXPECT_TRUE(made_.Comes(kRecv));
  EXPECT_TRUE(HasCode(made.status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::UNAVAILABLE));
}

class AsyncServerShutdownTest : public AsyncServerEndsTest {
 protected:
  void ShutDownMeanwhile(absl::Time deadline) {
    thread_.emplace([this, deadline] {
      server().Shutdown(deadline);
      returned_ = true;
    });
  }
  void AwaitReturn() {
    thread_->join();
    EXPECT_TRUE(returned_);
  }
  // It cannot, as long as a call is not finished.
  void ExpectWaiting() { EXPECT_FALSE(returned_); }

 private:
  std::optional<std::thread> thread_;
  std::atomic<bool> returned_{false};
};

TEST_F(AsyncServerShutdownTest, ItWaitsForCalls) {
  AskedChat asked;
  TimedContext context;
  const auto stream = Open(&context, asked);
  AskedUnary unanswered;
  Ask(unanswered, Tag(kDone));
  ShutDownMeanwhile(absl::InfiniteFuture());
  // From here on it shuts down.
  EXPECT_TRUE(served().Comes(kDone, false));
  MadeUnary late;
  Make(late, Parcel(), Tag(kRecv));
  EXPECT_TRUE(made_.Comes(kRecv));
  EXPECT_TRUE(HasCode(late.status, rpc::StatusCode::UNAVAILABLE));
  // The one that runs does so as before.
  Parcel request;
  Parcel response;
  for (int i = 0; i < 5; ++i) {
    stream->Write(ParcelFor(i), Tag(kStart));
    EXPECT_TRUE(made_.Comes(kStart));
    asked.responder.Read(&request, Tag(kRead));
    EXPECT_TRUE(served().Comes(kRead));
    asked.responder.Write(request, Tag(kWrite));
    EXPECT_TRUE(served().Comes(kWrite));
    stream->Read(&response, Tag(kRecv));
    EXPECT_TRUE(made_.Comes(kRecv));
    EXPECT_EQ(response.responses(), i);
  }
  ExpectWaiting();
  asked.responder.Finish(rpc::Status::OK, Tag(kFinish));
  EXPECT_OK(EndOf(*stream));
  EXPECT_TRUE(served().Comes(kFinish));
  AwaitReturn();
  EXPECT_FALSE(asked.context.IsCancelled());
}

// Their events are for a thread that may be the one that shuts down.
TEST_F(AsyncServerEndsTest, AtTheShutdownsDeadlineCallsAreCancelled) {
  AskedChat asked;
  asked.context.AsyncNotifyWhenDone(Tag(kDone));
  TimedContext context;
  const auto stream = Open(&context, asked);
  Parcel request;
  asked.responder.Read(&request, Tag(kRead));
  MadeUnary made;
  Make(made, Parcel(), Tag(kRecv));
  AwaitArrival();
  AskedUnary unary;  // with a call at once, whose event nobody takes yet
  Ask(unary, Tag(kWrite));
  server().Shutdown(absl::Now() + absl::Milliseconds(20));
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(made_.Comes(kRecv));
  EXPECT_TRUE(HasCode(made.status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(served().Comes(kRead, false));
  EXPECT_TRUE(served().Comes(kDone));
  EXPECT_TRUE(served().Comes(kWrite));
  EXPECT_TRUE(unary.context.IsCancelled());
  unary.responder.Finish(Parcel(), rpc::Status::OK, Tag(kWrite));
  EXPECT_TRUE(served().Comes(kWrite, false));
  FinishInVain(asked);
}

// What is left of a call is the user's, and may outlive all the rest.
TEST_F(AsyncServerEndsTest, CallsMayOutliveTheServer) {
  AskedChat finished;
  std::optional<AskedChat> forgotten(std::in_place);
  TimedContext contexts[2];
  const auto first = Open(&contexts[0], finished);
  const auto second = Open(&contexts[1], *forgotten);
  Parcel request;
  finished.responder.Read(&request, Tag(kRead));
  server().Shutdown(absl::Now());
  EXPECT_TRUE(HasCode(EndOf(*first), rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(HasCode(EndOf(*second), rpc::StatusCode::UNAVAILABLE));
  server_.reset();
  EXPECT_TRUE(served().Comes(kRead, false));
  EXPECT_TRUE(finished.context.AllocateBuffer(1).ok());
  finished.context.TryCancel();
  FinishInVain(finished);
  forgotten.reset();
}

// Nor does a request for a call need the service, when both are gone.
TEST(AsyncServerGoneTest, ARequestThatDoesNotParseIsAnsweredAfterwards) {
  auto service = std::make_unique<Parcels::AsyncService>();
  std::unique_ptr<rpc::ServerCompletionQueue> queue;
  std::optional<Server> server(std::in_place, Arguments(), ServerUri(),
                               service.get(), &queue);
  ASSERT_TRUE(server->ok()) << server->status();
  const Client client(server->address());
  AskedUnary asked;
  service->RequestUnary(&asked.context, &asked.request, &asked.responder,
                        queue.get(), queue.get(), Tag(1));
  rpc::testing::QueueEvents made;
  rpc::GenericStub stub(client.shared_channel());
  TimedContext context;
  const rpc::Slice no_parcel("\xff");
  const auto call =
      stub.PrepareUnaryCall(&context, "/e2e.Parcels/Unary",
                            rpc::ByteBuffer(&no_parcel, 1), made.queue());
  call->StartCall();
  rpc::ByteBuffer response;
  rpc::Status status;
  call->Finish(&response, &status, Tag(2));
  client.Observe();
  server->server().Shutdown(absl::Now());
  EXPECT_TRUE(made.Comes(2));
  EXPECT_FALSE(status.ok());
  server.reset();
  service.reset();
  void* tag;
  bool ok;
  ASSERT_TRUE(queue->Next(&tag, &ok));
  EXPECT_EQ(tag, Tag(1));
  EXPECT_FALSE(ok);
  queue->Shutdown();
  EXPECT_FALSE(queue->Next(&tag, &ok));
}

// ---- Misuse.

TEST_F(AsyncServerEndsTest, ACallIsFinishedOnce) {
  AskedChat asked;
  TimedContext context;
  const auto stream = Open(&context, asked);
  asked.responder.Finish(rpc::Status(rpc::StatusCode::ABORTED, ""),
                         Tag(kFinish));
  // Left out, and logged.
  asked.responder.Finish(rpc::Status::OK, Tag(kDone));
  asked.responder.WriteAndFinish(Parcel(), rpc::WriteOptions(), rpc::Status::OK,
                                 Tag(kDone));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::ABORTED));
}

// ---- Clients that do not read.

TEST_F(AsyncServerEndsTest, AWriteWaitsForAClientThatDoesNotRead) {
  constexpr size_t kBytes = 10'000;
  for (const rpc::StatusCode code :
       {rpc::StatusCode::OK, rpc::StatusCode::ABORTED}) {
    AskedChat asked;
    TimedContext context;
    const auto stream = Open(&context, asked);
    int written = 0;
    for (;; ++written) {
      asked.responder.Write(ParcelOf(kBytes), Tag(kWrite));
      if (!served().HasCome(kWrite, absl::Milliseconds(200))) break;
      EXPECT_TRUE(served().Comes(kWrite));
    }
    // The window, and the one that waits.
    EXPECT_LE(written, 65'536 / static_cast<int>(kBytes) + 2);
    // It waits as well, and so does the status.
    asked.responder.WriteAndFinish(ParcelOf(kBytes), rpc::WriteOptions(),
                                   rpc::Status(code, ""), Tag(kFinish));
    EXPECT_TRUE(served().Comes(kFinish));
    Parcel response;
    for (int i = 0; i < written + 2; ++i) {
      stream->Read(&response, Tag(kRecv));
      EXPECT_TRUE(made_.Comes(kRecv)) << i << " of " << written;
      EXPECT_EQ(response.content().data().size(), kBytes);
    }
    stream->Read(&response, Tag(kRecv));
    EXPECT_TRUE(made_.Comes(kRecv, false));
    EXPECT_TRUE(HasCode(EndOf(*stream), code));
    EXPECT_TRUE(served().Comes(kWrite));
  }
}

// ---- Servers that are not made.

TEST(AsyncServerBuildTest, AQueueIsNeeded) {
  Parcels::AsyncService service;
  const Server server({}, ServerUri(), &service);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(
      absl::StrContains(server.status().message(), "AddCompletionQueue"))
      << server.status();
}

TEST(AsyncServerBuildTest, AServiceServesOneServer) {
  Parcels::AsyncService service;
  std::unique_ptr<rpc::ServerCompletionQueue> queue;
  { const Server first({}, ServerUri(), &service, &queue); }
  const Server second({}, ServerUri(), &service, &queue);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(second.status().message(), "one server"))
      << second.status();
}

}  // namespace
}  // namespace e2e
