// Goal: a client's calls by completion queues, of all kinds, are gRPC's: each
// operation gives one event, whose `ok` says what gRPC's says. Method: a
// blocking service in this process; the test takes events by their tags. How
// calls end otherwise than well is async_client_ends_test's, many at a time
// async_load_test's.
#include <memory>
#include <utility>

#include "benchmarks/test_pattern.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/async_client_fixture.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/resources.h"
#include "tests/rpc/queue_events.h"

namespace e2e {
namespace {

using rpc::testing::QueueEvents;
using rpc::testing::Tag;

// Either by AsyncX, or by PrepareAsyncX and StartCall.
class AsyncClientTest
    : public AsyncClientFixture<testing::TestWithParam<bool>> {
 protected:
  auto Unary(rpc::ClientContext* context, const Parcel& request) {
    if (!GetParam()) return stub_->AsyncUnary(context, request, queue());
    auto call = stub_->PrepareAsyncUnary(context, request, queue());
    call->StartCall();
    return call;
  }
  auto Upload(rpc::ClientContext* context, Parcel* response) {
    if (GetParam()) {
      return Started(stub_->PrepareAsyncUpload(context, response, queue()));
    }
    return HasBegun(
        stub_->AsyncUpload(context, response, queue(), Tag(kStart)));
  }
  auto Download(rpc::ClientContext* context, const Parcel& request) {
    if (GetParam()) {
      return Started(stub_->PrepareAsyncDownload(context, request, queue()));
    }
    return HasBegun(
        stub_->AsyncDownload(context, request, queue(), Tag(kStart)));
  }
  auto Chat(rpc::ClientContext* context) {
    if (GetParam()) return Started(stub_->PrepareAsyncChat(context, queue()));
    return HasBegun(stub_->AsyncChat(context, queue(), Tag(kStart)));
  }

 private:
  template <class Stream>
  std::unique_ptr<Stream> Started(std::unique_ptr<Stream> stream) {
    EXPECT_TRUE(events_.NothingCame());
    stream->StartCall(Tag(kStart));
    return HasBegun(std::move(stream));
  }
  template <class Stream>
  std::unique_ptr<Stream> HasBegun(std::unique_ptr<Stream> stream) {
    EXPECT_TRUE(events_.Comes(kStart));
    return stream;
  }
};

INSTANTIATE_TEST_SUITE_P(Beginnings, AsyncClientTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Prepared" : "Async";
                         });

TEST_P(AsyncClientTest, AUnaryCallGivesItsResponse) {
  for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
    TimedContext context;
    Parcel request = ParcelOf(bytes);
    request.set_response_bytes(static_cast<int32_t>(bytes));
    const auto call = Unary(&context, request);
    Parcel response;
    EXPECT_OK(EndOf(*call, &response));
    EXPECT_EQ(response.content().data(), request.content().data());
    EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
    EXPECT_EQ(context.GetServerTrailingMetadata().count("last"), 1u);
    EXPECT_TRUE(context.may_have_run());
  }
}

TEST_P(AsyncClientTest, CorkedMetadataGiveNoEventOfTheStart) {
  TimedContext context;
  context.set_initial_metadata_corked(true);
  std::unique_ptr<rpc::ClientAsyncReaderWriter<Parcel, Parcel>> stream;
  if (GetParam()) {
    stream = stub_->PrepareAsyncChat(&context, queue());
    stream->StartCall(Tag(kStart));
  } else {
    stream = stub_->AsyncChat(&context, queue(), Tag(kStart));
  }
  // Events come in turn: that of the start would be the first.
  stream->Write(ParcelFor(1), Tag(kWrite));
  ASSERT_TRUE(events_.Comes(kWrite));
  stream->WritesDone(Tag(kWritesDone));
  ASSERT_TRUE(events_.Comes(kWritesDone));
  Parcel response;
  stream->Read(&response, Tag(kRead));
  ASSERT_TRUE(events_.Comes(kRead));
  EXPECT_OK(End(*stream));
  EXPECT_TRUE(events_.NothingCame());
}

TEST_P(AsyncClientTest, MetadataCanBeHadBeforeTheResponse) {
  TimedContext context;
  const auto call = Unary(&context, ParcelOf(kSmall));
  call->ReadInitialMetadata(Tag(kMetadata));
  EXPECT_TRUE(events_.Comes(kMetadata));
  EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
  Parcel response;
  EXPECT_OK(EndOf(*call, &response));
}

TEST_P(AsyncClientTest, AClientStreamIsWrittenOneByOne) {
  TimedContext context;
  Parcel response;
  const auto stream = Upload(&context, &response);
  for (const size_t bytes : {kSmall, kLarge, kSmall, size_t{0}, kLarge}) {
    Parcel request = ParcelOf(bytes);
    request.set_response_bytes(static_cast<int32_t>(bytes));
    stream->Write(request, Tag(kWrite));
    EXPECT_TRUE(events_.Comes(kWrite));
  }
  stream->WritesDone(Tag(kWritesDone));
  EXPECT_TRUE(events_.Comes(kWritesDone));
  EXPECT_OK(End(*stream));
  EXPECT_EQ(service_.read, 5);
  EXPECT_EQ(response.content().data().size(), kLarge);
  EXPECT_EQ(context.GetServerTrailingMetadata().count("last"), 1u);
}

TEST_P(AsyncClientTest, TheLastMessageCanEndTheStream) {
  TimedContext context;
  Parcel response;
  const auto stream = Upload(&context, &response);
  stream->Write(ParcelOf(kSmall), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite));
  stream->WriteLast(ParcelOf(kLarge), rpc::WriteOptions(), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite));
  // It was the last.
  stream->Write(ParcelOf(kSmall), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite, false));
  stream->WritesDone(Tag(kWritesDone));
  EXPECT_TRUE(events_.Comes(kWritesDone, false));
  EXPECT_OK(End(*stream));
  EXPECT_EQ(service_.read, 2);
}

TEST_P(AsyncClientTest, AServerStreamIsReadOneByOne) {
  for (const size_t bytes : {kSmall, kLarge}) {
    TimedContext context;
    const auto stream = Download(&context, ParcelFor(5, bytes));
    stream->ReadInitialMetadata(Tag(kMetadata));
    EXPECT_TRUE(events_.Comes(kMetadata));
    EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
    Parcel response;
    for (int i = 0; i < 5; ++i) {
      stream->Read(&response, Tag(kRead));
      EXPECT_TRUE(events_.Comes(kRead));
      EXPECT_EQ(response.content().data().size(), bytes);
    }
    stream->Read(&response, Tag(kRead));
    EXPECT_TRUE(events_.Comes(kRead, false));
    EXPECT_OK(End(*stream));
  }
}

// A call that is over before its beginning is told has begun all the same.
TEST_P(AsyncClientTest, ShortStreamsBegin) {
  for (int i = 0; i < 300; ++i) {
    TimedContext context;
    const auto stream = Download(&context, Parcel());
    EXPECT_OK(End(*stream));
  }
}

TEST_P(AsyncClientTest, BothDirectionsAtATime) {
  TimedContext context;
  const auto stream = Chat(&context);
  Parcel response;
  for (int i = 0; i < 20; ++i) {
    const size_t bytes = i % 4 == 3 ? kLarge : kSmall;
    stream->Read(&response, Tag(kRead));
    stream->Write(ParcelFor(1, bytes), Tag(kWrite));
    EXPECT_TRUE(events_.Comes(kRead));
    EXPECT_TRUE(events_.Comes(kWrite));
    EXPECT_EQ(response.content().data().size(), bytes);
  }
  // All that is left, at once.
  stream->Read(&response, Tag(kRead));
  rpc::Status status(rpc::StatusCode::DATA_LOSS, "");
  stream->Finish(&status, Tag(kFinish));
  EXPECT_TRUE(events_.NothingCame());
  stream->WritesDone(Tag(kWritesDone));
  EXPECT_TRUE(events_.Comes(kWritesDone));
  EXPECT_TRUE(events_.Comes(kRead, false));
  EXPECT_TRUE(events_.Comes(kFinish));
  EXPECT_OK(status);
}

TEST_P(AsyncClientTest, TheObjectMayGoBeforeTheEvent) {
  TimedContext context;
  Parcel response;
  rpc::Status status(rpc::StatusCode::DATA_LOSS, "");
  Unary(&context, ParcelFor(1, kLarge))
      ->Finish(&response, &status, Tag(kFinish));
  EXPECT_TRUE(events_.Comes(kFinish));
  EXPECT_OK(status);
  EXPECT_EQ(response.content().data().size(), kLarge);

  TimedContext second;
  Download(&second, ParcelFor(1, kSmall))->Read(&response, Tag(kRead));
  EXPECT_TRUE(events_.Comes(kRead));
  EXPECT_EQ(response.content().data().size(), kSmall);
}

TEST_P(AsyncClientTest, ACallThatNobodyHoldsIsCancelled) {
  {
    TimedContext context;
    const auto stream = Download(&context, ParcelFor(1'000'000, kSmall));
    Parcel response;
    stream->Read(&response, Tag(kRead));
    EXPECT_TRUE(events_.Comes(kRead));
  }
  EXPECT_TRUE(Eventually([&] { return service_.cut_off == 1; }));
  {
    TimedContext context;
    Unary(&context, ParcelOf(kLarge));
  }
  EXPECT_TRUE(ends_.IsAlive());
}

class PreparedCallTest : public AsyncClientFixture<testing::Test> {};

TEST_F(PreparedCallTest, ItKeepsItsRequest) {
  for (const size_t bytes : {kSmall, kLarge}) {
    TimedContext context;
    auto request = std::make_unique<Parcel>(ParcelFor(1, bytes));
    request->mutable_content()->set_data(std::string(bytes, 'x'));
    const auto stream =
        stub_->PrepareAsyncDownload(&context, *request, queue());
    request.reset();
    stream->StartCall(Tag(kStart));
    EXPECT_TRUE(events_.Comes(kStart));
    Parcel response;
    stream->Read(&response, Tag(kRead));
    EXPECT_TRUE(events_.Comes(kRead));
    EXPECT_EQ(response.content().data().size(), bytes);
    EXPECT_OK(End(*stream));
  }
}

// As in gRPC, where StartCall sends them.
TEST_F(PreparedCallTest, ItsMetadataMayBeAddedUntilItStarts) {
  TimedContext context;
  const auto call = stub_->PrepareAsyncUnary(&context, Parcel(), queue());
  context.AddMetadata("Illegal", "key");
  call->StartCall();
  Parcel response;
  EXPECT_TRUE(HasCode(EndOf(*call, &response), rpc::StatusCode::INTERNAL));

  TimedContext second;
  const auto stream = stub_->PrepareAsyncChat(&second, queue());
  second.AddMetadata("Illegal", "key");
  stream->StartCall(Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart, false));
  EXPECT_TRUE(HasCode(EndOfDead(*stream), rpc::StatusCode::INTERNAL));
}

TEST_F(PreparedCallTest, ItsAttachmentMayBeSetUntilItStarts) {
  const auto probe = Probe::NewStub(ends_.channel());
  for (const size_t bytes : {kSmall, kLarge}) {
    const std::string data = benchmarks::TestPattern(bytes, 1);
    TimedContext context;
    const auto call = probe->PrepareAsyncEcho(&context, Blob(), queue());
    context.set_attachment(rpc::BufferChain(rpc::Buffer::CopyOf(data)));
    call->StartCall();
    Blob response;
    rpc::Status status;
    call->Finish(&response, &status, Tag(kFinish));
    EXPECT_TRUE(events_.Comes(kFinish));
    EXPECT_OK(status);
    EXPECT_TRUE(benchmarks::Equals(context.attachment(), data));
  }
}

TEST_F(PreparedCallTest, ItNeedNotBegin) {
  Parcel response;
  for (int i = 0; i < 3; ++i) {
    TimedContext unary;
    stub_->PrepareAsyncUnary(&unary, ParcelOf(kLarge), queue());
    TimedContext upload;
    stub_->PrepareAsyncUpload(&upload, &response, queue());
    TimedContext chat;
    stub_->PrepareAsyncChat(&chat, queue());
  }
  EXPECT_TRUE(events_.NothingCame());
  EXPECT_TRUE(ends_.IsAlive());
  EXPECT_EQ(service_.begun, 0);
}

TEST_F(PreparedCallTest, CancelledBeforeItStartsItNeverRuns) {
  for (int i = 0; i < 20; ++i) {
    TimedContext context;
    const auto call = stub_->PrepareAsyncUnary(&context, Parcel(), queue());
    context.TryCancel();
    call->StartCall();
    Parcel response;
    EXPECT_TRUE(HasCode(EndOf(*call, &response), rpc::StatusCode::CANCELLED));
    EXPECT_FALSE(context.may_have_run());
  }
  TimedContext context;
  context.TryCancel();
  const auto stream = stub_->AsyncChat(&context, queue(), Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart, false));
  EXPECT_TRUE(HasCode(EndOfDead(*stream), rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(ends_.IsAlive());
  EXPECT_EQ(service_.begun, 0);
}

}  // namespace
}  // namespace e2e
