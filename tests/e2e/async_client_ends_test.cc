// Goal: however a client's call by a completion queue ends, each operation that
// was begun gives its event, with gRPC's `ok`, and Finish gives gRPC's status.
// Method: as async_client_test.
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/generated_code.h"
#include "rpc/rpc.h"
#include "tests/e2e/async_client_fixture.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/resources.h"
#include "tests/rpc/queue_events.h"

namespace e2e {
namespace {

using rpc::testing::QueueEvents;
using rpc::testing::Tag;

class AsyncClientEndsTest : public AsyncClientFixture<testing::Test> {
 protected:
  auto Chat(rpc::ClientContext* context) {
    auto stream = stub_->AsyncChat(context, queue(), Tag(kStart));
    EXPECT_TRUE(events_.Comes(kStart));
    return stream;
  }
};

// ---- The server's word.

TEST_F(AsyncClientEndsTest, AnErrorComesWithFinish) {
  TimedContext context;
  Parcel response = ParcelOf(1);
  const auto stream =
      stub_->AsyncUpload(&context, &response, queue(), Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart));
  stream->Write(Abort(), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite));
  const rpc::Status status = End(*stream);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::ABORTED));
  EXPECT_EQ(status.error_message(), "early");
  EXPECT_EQ(context.GetServerTrailingMetadata().count("last"), 1u);
  // The call is over for writes, too.
  stream->Write(Abort(), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite, false));
}

TEST_F(AsyncClientEndsTest, WhatNobodyImplementsIsUnimplemented) {
  const auto nobody = Forgeries::NewStub(ends_.channel());
  TimedContext context;
  Forgery response;
  rpc::Status status;
  const auto call = nobody->AsyncUnary(&context, Parcel(), queue());
  call->ReadInitialMetadata(Tag(kMetadata));
  call->Finish(&response, &status, Tag(kFinish));
  EXPECT_TRUE(events_.Comes(kMetadata, false));
  EXPECT_TRUE(events_.Comes(kFinish));
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNIMPLEMENTED));
}

// It depends on the answer, and not on who was first.
TEST_F(AsyncClientEndsTest, AnErrorThatComesAloneHasNoInitialMetadata) {
  ParcelService silent;
  OneConnection ends(&silent);
  ASSERT_TRUE(ends.ok());
  const auto stub = Parcels::NewStub(ends.channel());
  for (const bool first : {true, false}) {
    TimedContext context;
    const auto stream = stub->AsyncChat(&context, queue(), Tag(kStart));
    EXPECT_TRUE(events_.Comes(kStart));
    if (first) stream->ReadInitialMetadata(Tag(kMetadata));
    stream->Write(Abort(), Tag(kWrite));
    EXPECT_TRUE(events_.Comes(kWrite));
    EXPECT_TRUE(HasCode(End(*stream), rpc::StatusCode::ABORTED));
    if (!first) stream->ReadInitialMetadata(Tag(kMetadata));
    EXPECT_TRUE(events_.Comes(kMetadata, false)) << first;
  }
}

TEST_F(AsyncClientEndsTest, AnErrorMayBringInitialMetadata) {
  for (const bool first : {true, false}) {
    TimedContext context;
    const auto stream = Chat(&context);
    if (first) stream->ReadInitialMetadata(Tag(kMetadata));
    stream->Write(Abort(), Tag(kWrite));
    EXPECT_TRUE(events_.Comes(kWrite));
    EXPECT_TRUE(HasCode(End(*stream), rpc::StatusCode::ABORTED));
    if (!first) stream->ReadInitialMetadata(Tag(kMetadata));
    EXPECT_TRUE(events_.Comes(kMetadata)) << first;
    EXPECT_EQ(context.GetServerInitialMetadata().count("first"), 1u);
  }
}

TEST_F(AsyncClientEndsTest, AServerThatCancelsEndsTheCall) {
  ParcelService cancelling(
      [](rpc::ServerContext* context) { context->TryCancel(); });
  OneConnection ends(&cancelling);
  ASSERT_TRUE(ends.ok());
  TimedContext context;
  const auto stream = Parcels::NewStub(ends.channel())
                          ->AsyncChat(&context, queue(), Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart));
  Parcel response;
  stream->Read(&response, Tag(kRead));
  EXPECT_TRUE(events_.Comes(kRead, false));
  EXPECT_TRUE(HasCode(EndOfDead(*stream), rpc::StatusCode::CANCELLED));
}

TEST_F(AsyncClientEndsTest, AResponseThatIsNoMessageIsInternal) {
  ForgeryService forger;
  OneConnection ends(&forger);
  ASSERT_TRUE(ends.ok());
  using rpc::internal::RpcMethod;
  const RpcMethod unary("/e2e.Forgeries/Unary", RpcType::NORMAL_RPC,
                        ends.channel());
  const RpcMethod download("/e2e.Forgeries/Download", RpcType::SERVER_STREAMING,
                           ends.channel());
  for (const size_t bytes : {kSmall, kLarge}) {
    TimedContext context;
    const std::unique_ptr<rpc::ClientAsyncResponseReader<Parcel>> call(
        rpc::internal::ClientAsyncResponseReaderFactory<Parcel>::Create(
            ends.channel().get(), queue(), unary, &context,
            ParcelFor(1, bytes)));
    call->StartCall();
    Parcel response;
    EXPECT_TRUE(HasCode(EndOf(*call, &response), rpc::StatusCode::INTERNAL));

    TimedContext second;
    Parcel request = ParcelFor(1'000'000, bytes);
    request.set_good_responses(2);
    const std::unique_ptr<rpc::ClientAsyncReader<Parcel>> stream(
        rpc::internal::ClientAsyncReaderFactory<Parcel>::Create(
            ends.channel().get(), queue(), download, &second, request, true,
            Tag(kStart)));
    EXPECT_TRUE(events_.Comes(kStart));
    for (int i = 0; i < 3; ++i) {
      stream->Read(&response, Tag(kRead));
      EXPECT_TRUE(events_.Comes(kRead, i < 2)) << i;
    }
    EXPECT_TRUE(HasCode(End(*stream), rpc::StatusCode::INTERNAL));
    EXPECT_TRUE(Eventually([&] { return forger.running == 0; }));
  }
  EXPECT_TRUE(ends.IsAlive());
}

// ---- The client's.

TEST_F(AsyncClientEndsTest, AContextServesOneCall) {
  TimedContext context;
  const auto first = Chat(&context);
  const auto second = stub_->AsyncChat(&context, queue(), Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart, false));
  EXPECT_TRUE(
      HasCode(EndOfDead(*second), rpc::StatusCode::FAILED_PRECONDITION));
  const auto third = stub_->AsyncUnary(&context, Parcel(), queue());
  Parcel response;
  EXPECT_TRUE(
      HasCode(EndOf(*third, &response), rpc::StatusCode::FAILED_PRECONDITION));
  // The first one does not mind.
  first->WritesDone(Tag(kWritesDone));
  EXPECT_TRUE(events_.Comes(kWritesDone));
  EXPECT_OK(End(*first));
}

TEST_F(AsyncClientEndsTest, CancellingEndsWhatWaits) {
  TimedContext context;
  const auto stream = Chat(&context);
  Parcel response;
  stream->Read(&response, Tag(kRead));
  rpc::Status status;
  stream->Finish(&status, Tag(kFinish));
  EXPECT_TRUE(Eventually([&] { return service_.running == 1; }));
  EXPECT_TRUE(events_.NothingCame());
  context.TryCancel();
  EXPECT_TRUE(events_.Comes(kRead, false));
  EXPECT_TRUE(events_.Comes(kFinish));
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(Eventually([&] { return service_.cut_off == 1; }));
  context.TryCancel();
  EXPECT_TRUE(ends_.IsAlive());
}

TEST_F(AsyncClientEndsTest, ADeadlineEndsWhatWaits) {
  TimedContext context(absl::Milliseconds(50));
  const auto stream = stub_->AsyncChat(&context, queue(), Tag(kStart));
  // It may be over by now.
  bool started;
  EXPECT_TRUE(events_.Get(kStart, &started));
  Parcel response;
  stream->Read(&response, Tag(kRead));
  EXPECT_TRUE(events_.Comes(kRead, false));
  EXPECT_GE(absl::Now(), context.raw_deadline());
  EXPECT_TRUE(HasCode(End(*stream), rpc::StatusCode::DEADLINE_EXCEEDED));

  TimedContext past(-absl::Seconds(1));
  const auto call = stub_->AsyncUnary(&past, Parcel(), queue());
  EXPECT_TRUE(
      HasCode(EndOf(*call, &response), rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_TRUE(ends_.IsAlive());
}

// ---- The channel's.

TEST_F(AsyncClientEndsTest, AChannelThatCannotConnectSaysSo) {
  const std::string address = ServerUri(PortToComeBackTo());
  const Client nowhere(address);
  const auto stub = Parcels::NewStub(nowhere.shared_channel());
  TimedContext context;
  const auto stream = stub->AsyncChat(&context, queue(), Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart, false));
  Parcel response;
  stream->Read(&response, Tag(kRead));
  EXPECT_TRUE(events_.Comes(kRead, false));
  EXPECT_TRUE(HasCode(EndOfDead(*stream), rpc::StatusCode::UNAVAILABLE));
  EXPECT_FALSE(context.may_have_run());
  // By now it is known.
  TimedContext second;
  const auto refused = stub->AsyncChat(&second, queue(), Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart, false));
  EXPECT_TRUE(HasCode(End(*refused), rpc::StatusCode::UNAVAILABLE));

  TimedContext patient(absl::Milliseconds(100));
  patient.set_wait_for_ready(true);
  const auto call = stub->AsyncUnary(&patient, Parcel(), queue());
  EXPECT_TRUE(
      HasCode(EndOf(*call, &response), rpc::StatusCode::DEADLINE_EXCEEDED));
}

// As long as there is no connection, it is not on its way.
TEST_F(AsyncClientEndsTest, AStreamBeginsWhenThereIsAConnection) {
  const std::string address = ServerUri(PortToComeBackTo());
  const Client client(address, QuickReconnect());
  const auto stub = Parcels::NewStub(client.shared_channel());
  TimedContext context;
  context.set_wait_for_ready(true);
  Parcel response;
  const auto stream =
      stub->AsyncUpload(&context, &response, queue(), Tag(kStart));
  stream->WritesDone(Tag(kWritesDone));
  EXPECT_FALSE(events_.HasCome(kStart, absl::Milliseconds(50)));
  EXPECT_FALSE(events_.HasCome(kWritesDone, absl::ZeroDuration()));
  ParcelService service;
  const Server server({}, address, &service);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(events_.Comes(kStart));
  EXPECT_TRUE(events_.Comes(kWritesDone));
  EXPECT_OK(End(*stream));
}

TEST_F(AsyncClientEndsTest, AChannelThatIsNoneSaysSo) {
  const auto stub = Parcels::NewStub(rpc::CreateChannel(
      "no://such.scheme:1", rpc::InsecureChannelCredentials()));
  TimedContext context;
  const auto stream = stub->AsyncChat(&context, queue(), Tag(kStart));
  EXPECT_TRUE(events_.Comes(kStart, false));
  const rpc::Status status = EndOfDead(*stream);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(Names(status, "no://such.scheme:1")) << status;
  stream->ReadInitialMetadata(Tag(kMetadata));
  EXPECT_TRUE(events_.Comes(kMetadata, false));
}

TEST_F(AsyncClientEndsTest, AStreamKeepsItsChannel) {
  TimedContext context;
  std::unique_ptr<rpc::ClientAsyncReaderWriter<Parcel, Parcel>> stream;
  {
    const Client own(ends_.server().address(),
                     {{"grpc.use_local_subchannel_pool", 1}});
    stream = Parcels::NewStub(own.shared_channel())
                 ->AsyncChat(&context, queue(), Tag(kStart));
  }
  EXPECT_TRUE(events_.Comes(kStart));
  stream->Write(ParcelFor(1), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite));
  Parcel response;
  stream->Read(&response, Tag(kRead));
  EXPECT_TRUE(events_.Comes(kRead));
  stream->WritesDone(Tag(kWritesDone));
  EXPECT_TRUE(events_.Comes(kWritesDone));
  EXPECT_OK(End(*stream));
}

// ---- The queue's.

TEST_F(AsyncClientEndsTest, AQueueThatIsShutDownBeginsNothing) {
  TimedContext context;
  Parcel response;
  rpc::Status status(rpc::StatusCode::DATA_LOSS, "");
  const auto stream = Chat(&context);
  stream->Read(&response, Tag(kRead));
  queue()->Shutdown();
  // All of these are left out.
  stream->Write(ParcelFor(1), Tag(kWrite));
  stream->Finish(&status, Tag(kFinish));
  TimedContext second;
  const auto late = stub_->AsyncChat(&second, queue(), Tag(kStart));
  EXPECT_TRUE(events_.NothingCame());
  context.TryCancel();
  EXPECT_TRUE(events_.Comes(kRead, false));
  EXPECT_TRUE(events_.IsOver());
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::DATA_LOSS));
  EXPECT_EQ(service_.read, 0);
}

// ---- Back-pressure.

constexpr size_t kBytes = 10'000;

class AsyncClientWindowTest : public AsyncClientEndsTest {
 protected:
  // Writes until an event does not come, and returns how many did.
  template <class Stream>
  int WriteUntilOneWaits(Stream& stream) {
    for (int written = 0;; ++written) {
      stream.Write(ParcelOf(kBytes), Tag(kWrite));
      if (!events_.HasCome(kWrite, absl::Milliseconds(200))) return written;
      EXPECT_TRUE(events_.Comes(kWrite));
    }
  }
};

// The server writes before it reads on, and nobody reads that.
TEST_F(AsyncClientWindowTest, AWriteWaitsForAServerThatDoesNotRead) {
  constexpr int kResponses = 100;
  TimedContext context;
  const auto stream = Chat(&context);
  stream->Write(ParcelFor(kResponses, kBytes), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite));
  const int written = WriteUntilOneWaits(*stream);
  // The window, and the one that waits.
  EXPECT_LE(written, 65'536 / static_cast<int>(kBytes) + 2);
  Parcel response;
  for (int i = 0; i < kResponses; ++i) {
    stream->Read(&response, Tag(kRead));
    EXPECT_TRUE(events_.Comes(kRead));
  }
  EXPECT_TRUE(events_.Comes(kWrite));
  stream->WritesDone(Tag(kWritesDone));
  EXPECT_TRUE(events_.Comes(kWritesDone));
  EXPECT_OK(End(*stream));
  EXPECT_EQ(service_.read, written + 2);
}

TEST_F(AsyncClientWindowTest, CancellingEndsAWriteThatWaits) {
  TimedContext context;
  const auto stream = Chat(&context);
  stream->Write(ParcelFor(1'000, kBytes), Tag(kWrite));
  EXPECT_TRUE(events_.Comes(kWrite));
  WriteUntilOneWaits(*stream);
  context.TryCancel();
  bool ok;
  EXPECT_TRUE(events_.Get(kWrite, &ok));
  // On a busy machine it may not have waited after all.
  while (ok) {
    stream->Write(ParcelOf(kBytes), Tag(kWrite));
    ASSERT_TRUE(events_.Get(kWrite, &ok));
  }
  EXPECT_TRUE(HasCode(End(*stream), rpc::StatusCode::CANCELLED));
}

}  // namespace
}  // namespace e2e
