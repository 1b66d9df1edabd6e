// Goal: calls of all kinds reach who asked for them by AsyncService::RequestX,
// and are answered as in gRPC; what asks and what comes meet in order, whoever
// is first. Method: one thread is both the client and the server. How calls end
// otherwise than well is async_server_ends_test's, many at a time
// async_load_test's.
#include <deque>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "benchmarks/test_pattern.h"
#include "gtest/gtest.h"
#include "rpc/generated_code.h"
#include "rpc/rpc.h"
#include "tests/e2e/async_server_fixture.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/parcels.h"
#include "tests/rpc/queue_events.h"

namespace e2e {
namespace {

using rpc::testing::QueueEvents;
using rpc::testing::Tag;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = 200'000;

rpc::BufferChain Attachment(size_t bytes) {
  return rpc::BufferChain(
      rpc::Buffer::CopyOf(benchmarks::TestPattern(bytes, bytes)));
}

class AsyncServerTest : public AsyncServerFixture<Parcels::AsyncService> {
 protected:
  // Server's tags, and the client's.
  enum : int { kAsked = 1, kMetadata, kRead, kWrite, kFinish };
  enum : int { kStart = 11, kGotMetadata, kRecv, kSend, kSendsDone, kEnd };

  template <class Stream>
  rpc::Status EndOf(Stream& stream) {
    rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
    stream.Finish(&status, Tag(kEnd));
    EXPECT_TRUE(made_.Comes(kEnd));
    return status;
  }
};

// ---- Each kind.

TEST_F(AsyncServerTest, AUnaryCallIsAnswered) {
  for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
    AskedUnary asked;
    Ask(asked, Tag(kAsked));
    MadeUnary made;
    made.context.AddMetadata("from", "client");
    made.context.set_attachment(Attachment(bytes));
    Make(made, ParcelOf(bytes), Tag(kEnd));
    ASSERT_TRUE(served().Comes(kAsked));
    EXPECT_EQ(asked.request.content().data().size(), bytes);
    EXPECT_EQ(asked.context.client_metadata().count("from"), 1u);
    EXPECT_EQ(asked.context.attachment().size(), bytes);
    EXPECT_NE(asked.context.raw_deadline(), absl::InfiniteFuture());
    EXPECT_NE(asked.context.peer(), "");
    EXPECT_FALSE(asked.context.IsCancelled());

    asked.context.AddInitialMetadata("first", "1");
    asked.context.AddTrailingMetadata("last", "2");
    asked.context.set_attachment(std::move(asked.context.attachment()));
    asked.responder.Finish(asked.request, rpc::Status::OK, Tag(kFinish));
    EXPECT_TRUE(made_.Comes(kEnd));
    EXPECT_TRUE(served().Comes(kFinish));
    EXPECT_OK(made.status);
    EXPECT_EQ(made.response.content().data().size(), bytes);
    EXPECT_TRUE(benchmarks::Equals(made.context.attachment(),
                                   benchmarks::TestPattern(bytes, bytes)));
    EXPECT_EQ(made.context.GetServerInitialMetadata().count("first"), 1u);
    EXPECT_EQ(made.context.GetServerTrailingMetadata().count("last"), 1u);
    EXPECT_FALSE(asked.context.IsCancelled());
  }
}

TEST_F(AsyncServerTest, AUnaryCallIsAnsweredByAnError) {
  for (const bool with_message : {false, true}) {
    AskedUnary asked;
    Ask(asked, Tag(kAsked));
    MadeUnary made;
    Make(made, Parcel(), Tag(kEnd));
    ASSERT_TRUE(served().Comes(kAsked));
    asked.context.AddTrailingMetadata("last", "2");
    const rpc::Status status(rpc::StatusCode::ABORTED, "text", "details");
    if (with_message) {
      asked.responder.Finish(ParcelOf(kLarge), status, Tag(kFinish));
    } else {
      asked.responder.FinishWithError(status, Tag(kFinish));
    }
    EXPECT_TRUE(served().Comes(kFinish));
    EXPECT_TRUE(made_.Comes(kEnd));
    EXPECT_TRUE(HasCode(made.status, rpc::StatusCode::ABORTED));
    EXPECT_EQ(made.status.error_message(), "text");
    EXPECT_EQ(made.status.error_details(), "details");
    EXPECT_EQ(made.context.GetServerTrailingMetadata().count("last"), 1u);
    EXPECT_FALSE(made.response.has_content());
  }
}

TEST_F(AsyncServerTest, InitialMetadataCanGoFirst) {
  AskedUnary asked;
  Ask(asked, Tag(kAsked));
  MadeUnary made;
  const auto call = stub_->AsyncUnary(&made.context, Parcel(), made_.queue());
  call->ReadInitialMetadata(Tag(kGotMetadata));
  call->Finish(&made.response, &made.status, Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  EXPECT_TRUE(made_.NothingCame());
  asked.context.AddInitialMetadata("first", "1");
  asked.responder.SendInitialMetadata(Tag(kMetadata));
  EXPECT_TRUE(served().Comes(kMetadata));
  EXPECT_TRUE(made_.Comes(kGotMetadata));
  EXPECT_EQ(made.context.GetServerInitialMetadata().count("first"), 1u);
  EXPECT_TRUE(made_.NothingCame());
  asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_OK(made.status);
}

// Each of them left, whatever came after it.
TEST_F(AsyncServerTest, NothingNeedsToBeWaitedForBeforeFinish) {
  for (int i = 0; i < 100; ++i) {
    AskedDownload asked;
    Ask(asked, Tag(kAsked));
    TimedContext context;
    const auto stream =
        stub_->AsyncDownload(&context, Parcel(), made_.queue(), Tag(kStart));
    EXPECT_TRUE(made_.Comes(kStart));
    ASSERT_TRUE(served().Comes(kAsked));
    const size_t bytes = i % 2 == 0 ? kSmall : kLarge;
    asked.responder.SendInitialMetadata(Tag(kMetadata));
    if (i % 3 == 0) asked.responder.Write(ParcelOf(bytes), Tag(kWrite));
    asked.responder.Finish(rpc::Status::OK, Tag(kFinish));
    Parcel response;
    if (i % 3 == 0) {
      stream->Read(&response, Tag(kRecv));
      EXPECT_TRUE(made_.Comes(kRecv));
      EXPECT_EQ(response.content().data().size(), bytes);
    }
    EXPECT_OK(EndOf(*stream));
    EXPECT_TRUE(served().Comes(kMetadata));
    if (i % 3 == 0) {
      EXPECT_TRUE(served().Comes(kWrite));
    }
    EXPECT_TRUE(served().Comes(kFinish));
  }
}

TEST_F(AsyncServerTest, AClientStreamIsReadOneByOne) {
  AskedUpload asked;
  Ask(asked, Tag(kAsked));
  TimedContext context;
  Parcel response;
  const auto stream =
      stub_->AsyncUpload(&context, &response, made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  // Before there is a message.
  ASSERT_TRUE(served().Comes(kAsked));
  for (const size_t bytes : {kSmall, kLarge, size_t{0}}) {
    stream->Write(ParcelOf(bytes), Tag(kSend));
    EXPECT_TRUE(made_.Comes(kSend));
    Parcel request;
    asked.responder.Read(&request, Tag(kRead));
    EXPECT_TRUE(served().Comes(kRead));
    EXPECT_EQ(request.content().data().size(), bytes);
  }
  Parcel request;
  asked.responder.Read(&request, Tag(kRead));
  EXPECT_TRUE(served().NothingCame());
  stream->WritesDone(Tag(kSendsDone));
  EXPECT_TRUE(made_.Comes(kSendsDone));
  EXPECT_TRUE(served().Comes(kRead, false));
  asked.responder.Finish(ParcelOf(kSmall), rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_OK(EndOf(*stream));
  EXPECT_EQ(response.content().data().size(), kSmall);
}

TEST_F(AsyncServerTest, AClientStreamIsAnsweredBeforeItsEnd) {
  for (const bool error : {false, true}) {
    AskedUpload asked;
    Ask(asked, Tag(kAsked));
    TimedContext context;
    Parcel response;
    const auto stream =
        stub_->AsyncUpload(&context, &response, made_.queue(), Tag(kStart));
    EXPECT_TRUE(made_.Comes(kStart));
    ASSERT_TRUE(served().Comes(kAsked));
    // The one that waits ends with the call.
    Parcel request;
    asked.responder.Read(&request, Tag(kRead));
    if (error) {
      asked.responder.FinishWithError(
          rpc::Status(rpc::StatusCode::ABORTED, "enough"), Tag(kFinish));
    } else {
      asked.responder.Finish(ParcelOf(kLarge), rpc::Status::OK, Tag(kFinish));
    }
    EXPECT_TRUE(served().Comes(kFinish));
    EXPECT_TRUE(served().Comes(kRead, false));
    EXPECT_TRUE(HasCode(EndOf(*stream), error ? rpc::StatusCode::ABORTED
                                              : rpc::StatusCode::OK));
    EXPECT_EQ(response.content().data().size(), error ? 0 : kLarge);
  }
}

TEST_F(AsyncServerTest, AServerStreamIsWrittenOneByOne) {
  AskedDownload asked;
  Ask(asked, Tag(kAsked));
  TimedContext context;
  const auto stream = stub_->AsyncDownload(&context, ParcelOf(kSmall),
                                           made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  ASSERT_TRUE(served().Comes(kAsked));
  EXPECT_EQ(asked.request.content().data().size(), kSmall);
  Parcel response;
  for (const size_t bytes : {kSmall, kLarge, size_t{0}}) {
    asked.responder.Write(ParcelOf(bytes), Tag(kWrite));
    EXPECT_TRUE(served().Comes(kWrite));
    stream->Read(&response, Tag(kRecv));
    EXPECT_TRUE(made_.Comes(kRecv));
    EXPECT_EQ(response.content().data().size(), bytes);
  }
  asked.responder.WriteLast(ParcelOf(kSmall), rpc::WriteOptions(), Tag(kWrite));
  EXPECT_TRUE(served().Comes(kWrite));
  asked.responder.Finish(rpc::Status(rpc::StatusCode::ABORTED, "enough"),
                         Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  stream->Read(&response, Tag(kRecv));
  EXPECT_TRUE(made_.Comes(kRecv));
  EXPECT_EQ(response.content().data().size(), kSmall);
  stream->Read(&response, Tag(kRecv));
  EXPECT_TRUE(made_.Comes(kRecv, false));
  EXPECT_TRUE(HasCode(EndOf(*stream), rpc::StatusCode::ABORTED));
}

TEST_F(AsyncServerTest, TheLastMessageGoesWithTheStatus) {
  for (const rpc::StatusCode code :
       {rpc::StatusCode::OK, rpc::StatusCode::ABORTED}) {
    for (const size_t bytes : {kSmall, kLarge}) {
      AskedChat asked;
      Ask(asked, Tag(kAsked));
      TimedContext context;
      const auto stream =
          stub_->AsyncChat(&context, made_.queue(), Tag(kStart));
      EXPECT_TRUE(made_.Comes(kStart));
      ASSERT_TRUE(served().Comes(kAsked));
      asked.responder.WriteAndFinish(
          ParcelOf(bytes),
          rpc::WriteOptions().set_attachment(Attachment(bytes)),
          rpc::Status(code, ""), Tag(kFinish));
      Parcel response;
      rpc::BufferChain attachment;
      stream->Read(&response, &attachment, Tag(kRecv));
      EXPECT_TRUE(made_.Comes(kRecv));
      EXPECT_EQ(response.content().data().size(), bytes);
      EXPECT_TRUE(benchmarks::Equals(attachment,
                                     benchmarks::TestPattern(bytes, bytes)));
      stream->Read(&response, Tag(kRecv));
      EXPECT_TRUE(made_.Comes(kRecv, false));
      EXPECT_TRUE(HasCode(EndOf(*stream), code));
      EXPECT_TRUE(served().Comes(kFinish));
    }
  }
}

TEST_F(AsyncServerTest, BothDirectionsAtATime) {
  AskedChat asked;
  Ask(asked, Tag(kAsked));
  TimedContext context;
  const auto stream = stub_->AsyncChat(&context, made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  ASSERT_TRUE(served().Comes(kAsked));
  Parcel request;
  Parcel response;
  for (int i = 0; i < 20; ++i) {
    const size_t bytes = i % 4 == 3 ? kLarge : kSmall;
    rpc::BufferChain up;
    rpc::BufferChain down;
    asked.responder.Read(&request, &up, Tag(kRead));
    asked.responder.Write(ParcelOf(bytes),
                          rpc::WriteOptions().set_attachment(Attachment(bytes)),
                          Tag(kWrite));
    stream->Read(&response, &down, Tag(kRecv));
    stream->Write(ParcelOf(bytes),
                  rpc::WriteOptions().set_attachment(Attachment(bytes)),
                  Tag(kSend));
    EXPECT_TRUE(served().Comes(kRead));
    EXPECT_TRUE(served().Comes(kWrite));
    EXPECT_TRUE(made_.Comes(kRecv));
    EXPECT_TRUE(made_.Comes(kSend));
    EXPECT_EQ(request.content().data().size(), bytes);
    EXPECT_EQ(response.content().data().size(), bytes);
    EXPECT_TRUE(benchmarks::Equals(up, benchmarks::TestPattern(bytes, bytes)));
    EXPECT_TRUE(
        benchmarks::Equals(down, benchmarks::TestPattern(bytes, bytes)));
  }
  asked.responder.Finish(rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_OK(EndOf(*stream));
}

// ---- Who asks, and what comes.

TEST_F(AsyncServerTest, CallsGoToThoseWhoAskedInTheirOrder) {
  constexpr int kCalls = 100;
  std::deque<AskedUnary> asked(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    Ask(asked[static_cast<size_t>(i)], Tag(i));
  }
  for (int i = 0; i < kCalls; ++i) {
    AskedUnary& each = asked[static_cast<size_t>(i)];
    MadeUnary made;
    Make(made, ParcelFor(i), Tag(kEnd));
    ASSERT_TRUE(served().Comes(i));
    EXPECT_EQ(each.request.responses(), i);
    each.responder.Finish(each.request, rpc::Status::OK, Tag(i));
    EXPECT_TRUE(served().Comes(i));
    EXPECT_TRUE(made_.Comes(kEnd));
    EXPECT_EQ(made.response.responses(), i);
  }
}

TEST_F(AsyncServerTest, CallsWaitUntilTheyAreAskedFor) {
  constexpr int kCalls = 50;
  std::deque<MadeUnary> made(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    Parcel request = ParcelOf(i % 10 == 9 ? kLarge : kSmall);
    request.set_responses(i);
    Make(made[static_cast<size_t>(i)], request, Tag(i));
  }
  AwaitArrival();
  EXPECT_TRUE(made_.NothingCame());
  for (int i = 0; i < kCalls; ++i) {
    AskedUnary asked;
    Ask(asked, Tag(kAsked));
    ASSERT_TRUE(served().Comes(kAsked));
    asked.responder.Finish(asked.request, rpc::Status::OK, Tag(kFinish));
    EXPECT_TRUE(served().Comes(kFinish));
  }
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_TRUE(made_.Comes(i));
    EXPECT_EQ(made[static_cast<size_t>(i)].response.responses(), i);
  }
}

// A stream's messages wait with it, as far as its window goes.
TEST_F(AsyncServerTest, AStreamWaitsWithItsMessages) {
  TimedContext context;
  Parcel response;
  const auto stream =
      stub_->AsyncUpload(&context, &response, made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  for (int i = 0; i < 5; ++i) {
    stream->Write(ParcelFor(i), Tag(kSend));
    EXPECT_TRUE(made_.Comes(kSend));
  }
  stream->WritesDone(Tag(kSendsDone));
  EXPECT_TRUE(made_.Comes(kSendsDone));
  AskedUpload asked;
  Ask(asked, Tag(kAsked));
  ASSERT_TRUE(served().Comes(kAsked));
  Parcel request;
  for (int i = 0; i < 5; ++i) {
    asked.responder.Read(&request, Tag(kRead));
    EXPECT_TRUE(served().Comes(kRead));
    EXPECT_EQ(request.responses(), i);
  }
  asked.responder.Read(&request, Tag(kRead));
  EXPECT_TRUE(served().Comes(kRead, false));
  asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_OK(EndOf(*stream));
}

// Of the request's event, and of the others.
TEST_F(AsyncServerTest, ACallCanHaveAnotherQueue) {
  QueueEvents own;
  AskedUnary asked;
  asked.context.AsyncNotifyWhenDone(Tag(kRead));
  service_.RequestUnary(&asked.context, &asked.request, &asked.responder,
                        own.queue(), queue_.get(), Tag(kAsked));
  MadeUnary made;
  Make(made, Parcel(), Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  asked.responder.SendInitialMetadata(Tag(kMetadata));
  EXPECT_TRUE(own.Comes(kMetadata));
  asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(own.Comes(kFinish));
  EXPECT_TRUE(own.Comes(kRead));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_OK(made.status);
}

// ---- Messages that are none.

class ForgedRequestTest : public AsyncServerTest {
 protected:
  // Makes a unary call whose request is none, and returns its status' event.
  void Forge(MadeUnary& made, size_t bytes, void* tag) {
    const rpc::internal::RpcMethod method(
        "/e2e.Parcels/Unary", RpcType::NORMAL_RPC, client_->shared_channel());
    const std::unique_ptr<rpc::ClientAsyncResponseReader<Parcel>> call(
        rpc::internal::ClientAsyncResponseReaderFactory<Parcel>::Create(
            client_->shared_channel().get(), made_.queue(), method,
            &made.context, ForgeryOf(bytes)));
    call->StartCall();
    call->Finish(&made.response, &made.status, tag);
  }
  void ExpectRefused(MadeUnary& made, int number) {
    // The one who asked has it refused, as Next is where messages are parsed.
    while (!made_.HasCome(number, absl::ZeroDuration())) {
      EXPECT_TRUE(served().NothingCame());
    }
    EXPECT_TRUE(made_.Comes(number));
    EXPECT_TRUE(HasCode(made.status, rpc::StatusCode::INTERNAL));
    EXPECT_TRUE(Names(made.status, "Failed to parse")) << made.status;
  }
};

TEST_F(ForgedRequestTest, NobodyHearsOfThem) {
  for (const size_t bytes : {size_t{1}, kSmall, kLarge}) {
    AskedUnary asked;
    Ask(asked, Tag(kAsked));
    for (int i = 0; i < 3; ++i) {
      MadeUnary forged;
      Forge(forged, bytes, Tag(kRecv));
      ExpectRefused(forged, kRecv);
    }
    // It still stands.
    MadeUnary made;
    Make(made, ParcelFor(7), Tag(kEnd));
    ASSERT_TRUE(served().Comes(kAsked));
    EXPECT_EQ(asked.request.responses(), 7);
    EXPECT_FALSE(asked.request.has_content());
    asked.responder.Finish(Parcel(), rpc::Status::OK, Tag(kFinish));
    EXPECT_TRUE(served().Comes(kFinish));
    EXPECT_TRUE(made_.Comes(kEnd));
    EXPECT_OK(made.status);
  }
}

TEST_F(ForgedRequestTest, NobodyHearsOfThoseThatWaited) {
  std::deque<MadeUnary> forged(3);
  for (int i = 0; i < 3; ++i) {
    Forge(forged[static_cast<size_t>(i)], kSmall, Tag(i));
  }
  AwaitArrival();
  AskedUnary asked;
  Ask(asked, Tag(kAsked));
  for (int i = 0; i < 3; ++i) {
    ExpectRefused(forged[static_cast<size_t>(i)], i);
  }
  MadeUnary made;
  Make(made, Parcel(), Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  asked.responder.FinishWithError(rpc::Status::CANCELLED, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
}

TEST_F(ForgedRequestTest, InAStreamTheyEndIt) {
  const rpc::internal::RpcMethod method(
      "/e2e.Parcels/Chat", RpcType::BIDI_STREAMING, client_->shared_channel());
  AskedChat asked;
  Ask(asked, Tag(kAsked));
  TimedContext context;
  const std::unique_ptr<rpc::ClientAsyncReaderWriter<Forgery, Parcel>> stream(
      rpc::internal::ClientAsyncReaderWriterFactory<Forgery, Parcel>::Create(
          client_->shared_channel().get(), made_.queue(), method, &context,
          /*start=*/true, Tag(kStart)));
  EXPECT_TRUE(made_.Comes(kStart));
  ASSERT_TRUE(served().Comes(kAsked));
  stream->Write(ForgeryOf(kSmall), Tag(kSend));
  EXPECT_TRUE(made_.Comes(kSend));
  Parcel request;
  asked.responder.Read(&request, Tag(kRead));
  EXPECT_TRUE(served().Comes(kRead, false));
  asked.responder.Write(Parcel(), Tag(kWrite));
  EXPECT_TRUE(served().Comes(kWrite, false));
  // What goes wrong unseen takes the place of OK.
  asked.responder.Finish(rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  const rpc::Status status = EndOf(*stream);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::INTERNAL));
  EXPECT_TRUE(Names(status, "Failed to parse")) << status;
}

}  // namespace
}  // namespace e2e
