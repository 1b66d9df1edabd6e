// Goal: each method of a service can have another of the server's APIs, and
// methods can be raw, as the class templates of generated code combine. Method:
// a service with one method of each API, one server, calls of all of them.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rpc/generated_code.h"
#include "rpc/rpc.h"
#include "tests/e2e/async_server_fixture.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/parcels.h"
#include "tests/rpc/queue_events.h"

namespace e2e {
namespace {

using rpc::testing::Tag;

constexpr size_t kSmall = 100;
constexpr size_t kLarge = 200'000;

// Tags of the server, and of the client.
enum : int { kAsked = 1, kRead, kWrite, kFinish };
enum : int { kStart = 11, kRecv, kSend, kSendsDone, kEnd };

std::string BytesOf(const rpc::ByteBuffer& buffer) {
  rpc::Slice slice;
  EXPECT_OK(buffer.DumpToSingleSlice(&slice));
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}
rpc::ByteBuffer BufferOf(const std::string& bytes) {
  const rpc::Slice slice(bytes);
  return rpc::ByteBuffer(&slice, 1);
}

// ---- One method of each API.

// Counts what is uploaded.
class UploadReactor final : public rpc::ServerReadReactor<Parcel> {
 public:
  explicit UploadReactor(Parcel* response) : response_(*response) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(rpc::Status::OK);
    response_.set_responses(response_.responses() + 1);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  Parcel& response_;
  Parcel request_;
};

class MixedService final
    : public Parcels::WithAsyncMethod_Unary<Parcels::WithCallbackMethod_Upload<
          Parcels::WithRawMethod_Chat<Parcels::Service>>> {
 private:
  rpc::ServerReadReactor<Parcel>* Upload(rpc::CallbackServerContext*,
                                         Parcel* response) override {
    return new UploadReactor(response);
  }
  rpc::Status Download(rpc::ServerContext*, const Parcel* request,
                       rpc::ServerWriter<Parcel>* writer) override {
    for (int i = 0; i < request->responses(); ++i) writer->Write(ParcelFor(i));
    return rpc::Status::OK;
  }
};

class MixedServiceTest : public AsyncServerFixture<MixedService> {
 protected:
  using RawResponder =
      rpc::ServerAsyncReaderWriter<rpc::ByteBuffer, rpc::ByteBuffer>;

  template <class Stream>
  rpc::Status EndOf(Stream& stream) {
    rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
    stream.Finish(&status, Tag(kEnd));
    EXPECT_TRUE(made_.Comes(kEnd));
    return status;
  }
};

TEST_F(MixedServiceTest, TheOneWithAQueue) {
  AskedUnary asked;
  Ask(asked, Tag(kAsked));
  MadeUnary made;
  Make(made, ParcelFor(7), Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  asked.responder.Finish(asked.request, rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_EQ(made.response.responses(), 7);
}

TEST_F(MixedServiceTest, TheOneWithAReactor) {
  TimedContext context;
  Parcel response;
  const auto stream = stub_->Upload(&context, &response);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(stream->Write(ParcelOf(kSmall)));
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_OK(stream->Finish());
  EXPECT_EQ(response.responses(), 5);
}

TEST_F(MixedServiceTest, TheOneThatBlocks) {
  TimedContext context;
  const auto stream = stub_->Download(&context, ParcelFor(5));
  Parcel response;
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.responses(), i);
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_OK(stream->Finish());
}

TEST_F(MixedServiceTest, TheOneThatIsRaw) {
  rpc::ServerContext server_context;
  RawResponder responder(&server_context);
  service_.RequestChat(&server_context, &responder, queue_.get(), queue_.get(),
                       Tag(kAsked));
  TimedContext context;
  const auto stream = stub_->AsyncChat(&context, made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  ASSERT_TRUE(served().Comes(kAsked));
  for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
    const Parcel request = ParcelOf(bytes);
    stream->Write(request, Tag(kSend));
    EXPECT_TRUE(made_.Comes(kSend));
    rpc::ByteBuffer buffer;
    responder.Read(&buffer, Tag(kRead));
    EXPECT_TRUE(served().Comes(kRead));
    EXPECT_EQ(BytesOf(buffer), request.SerializeAsString());
    responder.Write(buffer, Tag(kWrite));
    EXPECT_TRUE(served().Comes(kWrite));
    Parcel response;
    stream->Read(&response, Tag(kRecv));
    EXPECT_TRUE(made_.Comes(kRecv));
    EXPECT_EQ(response.content().data().size(), bytes);
  }
  responder.Finish(rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_OK(EndOf(*stream));
}

TEST_F(MixedServiceTest, AllAtATime) {
  AskedUnary asked;
  Ask(asked, Tag(kAsked));
  TimedContext upload_context;
  Parcel uploaded;
  const auto upload = stub_->Upload(&upload_context, &uploaded);
  TimedContext download_context;
  const auto download = stub_->Download(&download_context, ParcelFor(3));
  MadeUnary made;
  Make(made, ParcelFor(7), Tag(kEnd));
  EXPECT_TRUE(upload->Write(Parcel()));
  ASSERT_TRUE(served().Comes(kAsked));
  Parcel response;
  EXPECT_TRUE(download->Read(&response));
  asked.responder.Finish(asked.request, rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_OK(made.status);
  EXPECT_TRUE(upload->WritesDone());
  EXPECT_OK(upload->Finish());
  EXPECT_OK(download->Finish());
}

// ---- Raw methods of all kinds.

class RawServiceTest
    : public AsyncServerFixture<Parcels::WithRawMethod_Unary<
          Parcels::WithRawMethod_Upload<Parcels::WithRawMethod_Download<
              Parcels::WithRawMethod_Chat<Parcels::Service>>>>> {
 protected:
  // A unary call that waits for its answer.
  void AskUnary() {
    service_.RequestUnary(&context_, &request_, &responder_, queue_.get(),
                          queue_.get(), Tag(kAsked));
  }

  rpc::ServerContext context_;
  rpc::ByteBuffer request_;
  rpc::ServerAsyncResponseWriter<rpc::ByteBuffer> responder_{&context_};
};

TEST_F(RawServiceTest, BytesComeAndGoAsTheyAre) {
  AskUnary();
  MadeUnary made;
  const Parcel request = ParcelOf(kLarge);
  Make(made, request, Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  EXPECT_EQ(BytesOf(request_), request.SerializeAsString());
  responder_.Finish(BufferOf(ParcelFor(7).SerializeAsString()), rpc::Status::OK,
                    Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_OK(made.status);
  EXPECT_EQ(made.response.responses(), 7);
}

// Nobody parses it here.
TEST_F(RawServiceTest, WhatIsNoMessageComesAllTheSame) {
  AskUnary();
  const rpc::internal::RpcMethod method(
      "/e2e.Parcels/Unary", RpcType::NORMAL_RPC, client_->shared_channel());
  MadeUnary made;
  const std::unique_ptr<rpc::ClientAsyncResponseReader<Parcel>> call(
      rpc::internal::ClientAsyncResponseReaderFactory<Parcel>::Create(
          client_->shared_channel().get(), made_.queue(), method, &made.context,
          ForgeryOf(kSmall)));
  call->StartCall();
  call->Finish(&made.response, &made.status, Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  EXPECT_EQ(BytesOf(request_), ForgeryOf(kSmall).SerializeAsString());
  responder_.Finish(request_, rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_TRUE(HasCode(made.status, rpc::StatusCode::INTERNAL));
}

TEST_F(RawServiceTest, AnEmptyMessageIsOne) {
  AskUnary();
  MadeUnary made;
  made.response = ParcelFor(7);
  Make(made, Parcel(), Tag(kEnd));
  ASSERT_TRUE(served().Comes(kAsked));
  EXPECT_TRUE(request_.Valid());
  EXPECT_EQ(request_.Length(), 0u);
  responder_.Finish(request_, rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_OK(made.status);
  EXPECT_EQ(made.response.responses(), 0);
}

TEST_F(RawServiceTest, StreamsOfBytes) {
  rpc::ServerContext upload_context;
  rpc::ServerAsyncReader<rpc::ByteBuffer, rpc::ByteBuffer> upload(
      &upload_context);
  service_.RequestUpload(&upload_context, &upload, queue_.get(), queue_.get(),
                         Tag(kAsked));
  TimedContext context;
  Parcel response;
  const auto sending =
      stub_->AsyncUpload(&context, &response, made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  ASSERT_TRUE(served().Comes(kAsked));
  sending->WriteLast(ParcelOf(kSmall), rpc::WriteOptions(), Tag(kSend));
  EXPECT_TRUE(made_.Comes(kSend));
  rpc::ByteBuffer buffer;
  upload.Read(&buffer, Tag(kRead));
  EXPECT_TRUE(served().Comes(kRead));
  upload.Finish(buffer, rpc::Status::OK, Tag(kFinish));
  EXPECT_TRUE(served().Comes(kFinish));
  rpc::Status status;
  sending->Finish(&status, Tag(kEnd));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_OK(status);
  EXPECT_EQ(response.content().data().size(), kSmall);

  rpc::ServerContext download_context;
  rpc::ServerAsyncWriter<rpc::ByteBuffer> download(&download_context);
  service_.RequestDownload(&download_context, &buffer, &download, queue_.get(),
                           queue_.get(), Tag(kAsked));
  TimedContext second;
  const auto receiving = stub_->AsyncDownload(&second, ParcelOf(kLarge),
                                              made_.queue(), Tag(kStart));
  EXPECT_TRUE(made_.Comes(kStart));
  ASSERT_TRUE(served().Comes(kAsked));
  download.WriteAndFinish(buffer, rpc::WriteOptions(), rpc::Status::OK,
                          Tag(kFinish));
  receiving->Read(&response, Tag(kRecv));
  EXPECT_TRUE(made_.Comes(kRecv));
  EXPECT_EQ(response.content().data().size(), kLarge);
  receiving->Finish(&status, Tag(kEnd));
  EXPECT_TRUE(made_.Comes(kEnd));
  EXPECT_OK(status);
  EXPECT_TRUE(served().Comes(kFinish));
}

// ---- Raw reactors.

class RawEcho final
    : public rpc::ServerBidiReactor<rpc::ByteBuffer, rpc::ByteBuffer> {
 public:
  RawEcho() { StartRead(&buffer_); }
  void OnReadDone(bool ok) override {
    ok ? StartWrite(&buffer_) : Finish(rpc::Status::OK);
  }
  void OnWriteDone(bool ok) override {
    ok ? StartRead(&buffer_) : Finish(rpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  rpc::ByteBuffer buffer_;
};

class RawReactorService final
    : public Parcels::WithRawCallbackMethod_Unary<
          Parcels::WithRawCallbackMethod_Chat<Parcels::Service>> {
 private:
  rpc::ServerUnaryReactor* Unary(rpc::CallbackServerContext* context,
                                 const rpc::ByteBuffer* request,
                                 rpc::ByteBuffer* response) override {
    *response = *request;
    rpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(rpc::Status::OK);
    return reactor;
  }
  rpc::ServerBidiReactor<rpc::ByteBuffer, rpc::ByteBuffer>* Chat(
      rpc::CallbackServerContext*) override {
    return new RawEcho;
  }
};

TEST(RawReactorTest, BytesComeAndGoAsTheyAre) {
  RawReactorService service;
  const Server server({}, ServerUri(), &service);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = Parcels::NewStub(Client(server.address()).shared_channel());
  for (const size_t bytes : {size_t{0}, kSmall, kLarge}) {
    TimedContext unary_context;
    Parcel response;
    EXPECT_OK(stub->Unary(&unary_context, ParcelOf(bytes), &response));
    EXPECT_EQ(response.content().data().size(), bytes);

    TimedContext context;
    const auto stream = stub->Chat(&context);
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(stream->Write(ParcelOf(bytes)));
      EXPECT_TRUE(stream->Read(&response));
      EXPECT_EQ(response.content().data().size(), bytes);
    }
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_OK(stream->Finish());
  }
}

}  // namespace
}  // namespace e2e
