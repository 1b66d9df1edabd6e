// Goal: handlers that take a unary method, or one whose server streams, as a
// stream (WithStreamedUnaryMethod_X, WithSplitStreamingMethod_X) get the one
// request once, and their clients see no difference. Method: a service of both
// forms, called by the blocking client of parcels.proto.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"

namespace e2e {
namespace {

// Beside its message in a frame, and to be fetched by rendezvous.
constexpr size_t kSmall = 100;
constexpr size_t kLarge = 200'000;

// The one request. False: it is no message.
template <class Streamer>
bool ReadOnce(Streamer& streamer, Parcel* request) {
  uint32_t size = 0;
  EXPECT_TRUE(streamer.NextMessageSize(&size));
  const bool read = streamer.Read(request);
  EXPECT_GE(size, request->ByteSizeLong());

  Parcel another;
  EXPECT_FALSE(streamer.NextMessageSize(&size)) << "there was one request";
  EXPECT_FALSE(streamer.Read(&another));
  return read;
}

class StreamedService final : public Parcels::StreamedService {
 private:
  rpc::Status StreamedUnary(
      rpc::ServerContext*,
      rpc::ServerUnaryStreamer<Parcel, Parcel>* streamer) override {
    Parcel request;
    if (!ReadOnce(*streamer, &request)) return rpc::Status::OK;
    if (request.end()) return EndOf(request);
    Parcel response;
    Fill(request, 0, &response);
    EXPECT_TRUE(streamer->Write(response));
    EXPECT_FALSE(streamer->Write(Parcel())) << "there is one response";
    return rpc::Status::OK;
  }

  rpc::Status StreamedDownload(
      rpc::ServerContext* context,
      rpc::ServerSplitStreamer<Parcel, Parcel>* streamer) override {
    context->AddInitialMetadata("when", "before the request is read");
    streamer->SendInitialMetadata();
    Parcel request;
    if (!ReadOnce(*streamer, &request)) return rpc::Status::OK;
    for (int i = 0; i < request.responses(); ++i) {
      Parcel response;
      Fill(request, i, &response);
      response.set_responses(i);
      EXPECT_TRUE(streamer->Write(response));
    }
    return EndOf(request);
  }
};

class StreamedFormsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }
  void TearDown() override { EXPECT_TRUE(ends_.IsAlive()); }

  StreamedService service_;
  OneConnection ends_{&service_};
  std::unique_ptr<Parcels::Stub> stub_;
};

// ---- A unary method.

TEST_F(StreamedFormsTest, AUnaryMethodHasOneMessageEachWay) {
  for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
    Parcel request = ParcelOf(bytes);
    request.set_response_bytes(static_cast<int32_t>(bytes));
    TimedContext context;
    Parcel response;
    EXPECT_OK(stub_->Unary(&context, request, &response));
    EXPECT_EQ(response.content().data(), request.content().data());
  }
}

TEST_F(StreamedFormsTest, AUnaryMethodEndsWithItsHandlersStatus) {
  Parcel request;
  request.set_end(true);
  request.set_code(rpc::StatusCode::ABORTED);
  TimedContext context;
  Parcel response;
  const rpc::Status status = stub_->Unary(&context, request, &response);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::ABORTED));
  EXPECT_EQ(status.error_message(), "early");
}

TEST_F(StreamedFormsTest, AUnaryMethodThatWritesNothingIsInternal) {
  Parcel request;
  request.set_end(true);
  TimedContext context;
  Parcel response;
  const rpc::Status status = stub_->Unary(&context, request, &response);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::INTERNAL));
  EXPECT_TRUE(Names(status, "wrote none")) << status;
}

// ---- A method whose server streams.

TEST_F(StreamedFormsTest, AServersMessagesComeInOrderAndThenTheStatus) {
  for (const size_t bytes : {kSmall, kLarge}) {
    TimedContext context;
    const auto reader = stub_->Download(&context, ParcelFor(10, bytes));
    reader->WaitForInitialMetadata();
    EXPECT_EQ(context.GetServerInitialMetadata().count("when"), 1u);
    Parcel response;
    int count = 0;
    for (; reader->Read(&response); ++count) {
      EXPECT_EQ(response.responses(), count);
      EXPECT_EQ(response.content().data().size(), bytes);
    }
    EXPECT_EQ(count, 10);
    EXPECT_OK(reader->Finish());
  }
}

TEST_F(StreamedFormsTest, AServerThatStreamsMayWriteNothing) {
  for (const rpc::StatusCode code :
       {rpc::StatusCode::OK, rpc::StatusCode::ABORTED}) {
    Parcel request;
    request.set_code(code);
    TimedContext context;
    const auto reader = stub_->Download(&context, request);
    Parcel response;
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_TRUE(HasCode(reader->Finish(), code));
  }
}

// ---- Either.

TEST_F(StreamedFormsTest, ARequestThatIsNoMessageIsNotRead) {
  for (const RpcType type : {RpcType::NORMAL_RPC, RpcType::SERVER_STREAMING}) {
    TimedContext context;
    const auto result = Exchange<Forgery, Parcel>(
        ends_.channel(), type, std::string("/e2e.Parcels/") + MethodOf(type),
        &context, {ForgeryOf(kSmall)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL));
    EXPECT_TRUE(result.responses.empty());
  }
}

TEST_F(StreamedFormsTest, MethodsOfOtherKindsBlock) {
  TimedContext context;
  Parcel response;
  const auto writer = stub_->Upload(&context, &response);
  EXPECT_TRUE(HasCode(writer->Finish(), rpc::StatusCode::UNIMPLEMENTED));
}

}  // namespace
}  // namespace e2e
