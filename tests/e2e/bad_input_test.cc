// Goal: what either side of a call of any kind gets wrong, from a method that
// nobody has to messages that are none, ends that call with gRPC's status, and
// no other: the connection lives on. Method: a client that calls methods with
// other messages than theirs, a server that answers with others, limits on
// either side, and streams that end before their time. Metadata are
// bad_metadata_test's.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/one_connection.h"
#include "tests/e2e/parcels.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

// Beside its message in a frame, and to be fetched by rendezvous.
constexpr size_t kSmall = 100;
constexpr size_t kLarge = 200'000;

constexpr char kParcels[] = "/e2e.Parcels/";
constexpr char kForgeries[] = "/e2e.Forgeries/";

TEST(OneConnectionTest, KnowsAnotherConnection) {
  ParcelService service;
  const Arguments own = {{"grpc.use_local_subchannel_pool", 1}};
  OneConnection first(&service, {}, own);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first.IsAlive());
  const Client second(first.server().address(), own);
  const Client third(first.server().address(), own);
  EXPECT_NE(second.Observe().peer(), third.Observe().peer());
}

class BadInputTest : public testing::TestWithParam<RpcType> {
 protected:
  // With W and R for what the method has; its connection must outlive it.
  template <class W, class R>
  Exchanged<R> Call(const OneConnection& ends, const char* service,
                    const std::vector<W>& requests) {
    TimedContext context;
    Exchanged<R> result = Exchange<W, R>(ends.channel(), type_,
                                         absl::StrCat(service, MethodOf(type_)),
                                         &context, requests);
    EXPECT_TRUE(ends.IsAlive());
    return result;
  }
  Exchanged<Parcel> CallParcels(const OneConnection& ends,
                                const std::vector<Parcel>& requests) {
    return Call<Parcel, Parcel>(ends, kParcels, requests);
  }

  const RpcType type_ = GetParam();
  ParcelService service_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, BadInputTest, testing::ValuesIn(kAllTypes),
                         NameOfType);

class BadRequestStreamTest : public BadInputTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, BadRequestStreamTest,
                         testing::Values(RpcType::CLIENT_STREAMING,
                                         RpcType::BIDI_STREAMING),
                         NameOfType);

class BadResponseStreamTest : public BadInputTest {};
INSTANTIATE_TEST_SUITE_P(Kinds, BadResponseStreamTest,
                         testing::Values(RpcType::SERVER_STREAMING,
                                         RpcType::BIDI_STREAMING),
                         NameOfType);

// ---- Methods.

TEST_P(BadInputTest, AMethodThatNobodyHasIsUnimplemented) {
  OneConnection ends(&service_);
  ASSERT_TRUE(ends.ok());
  for (const std::string& path :
       {std::string("/e2e.Parcels/Missing"), std::string("/e2e.Nobody/Unary"),
        std::string("/e2e.Parcels/"), std::string("no slash"), std::string("/"),
        std::string(1024, 'p')}) {
    for (const size_t bytes : {kSmall, kLarge}) {
      TimedContext context;
      const auto result = Exchange<Parcel, Parcel>(ends.channel(), type_, path,
                                                   &context, {ParcelOf(bytes)});
      EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::UNIMPLEMENTED))
          << path;
      EXPECT_TRUE(result.responses.empty());
      EXPECT_TRUE(ends.IsAlive());
    }
  }
}

TEST_P(BadInputTest, APathThatNoFrameCanNameIsUnimplemented) {
  OneConnection ends(&service_);
  ASSERT_TRUE(ends.ok());
  for (const size_t bytes : {0u, 1025u, 9'000u, 70'000u, 200'000u}) {
    TimedContext context;
    const auto result =
        Exchange<Parcel, Parcel>(ends.channel(), type_, std::string(bytes, 'p'),
                                 &context, {ParcelOf(kSmall)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::UNIMPLEMENTED));
    EXPECT_TRUE(Names(result.status, "1024")) << result.status;
    EXPECT_FALSE(context.may_have_run());
    EXPECT_TRUE(ends.IsAlive());
  }
}

// ---- Messages of another type.

TEST_P(BadInputTest, ARequestThatIsNoMessageIsInternal) {
  OneConnection ends(&service_);
  ASSERT_TRUE(ends.ok());
  for (const size_t bytes : {size_t{1}, kSmall, kLarge}) {
    const auto result =
        Call<Forgery, Parcel>(ends, kParcels, {ForgeryOf(bytes)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL)) << bytes;
    EXPECT_TRUE(Names(result.status, "Failed to parse")) << result.status;
    EXPECT_TRUE(result.responses.empty());
  }
  EXPECT_EQ(service_.read, 0);
  // A handler that gets its request with the call does not run without it.
  if (!ClientStreams(type_)) {
    EXPECT_EQ(service_.begun, 0);
  }
}

TEST_P(BadInputTest, AResponseThatIsNoMessageIsInternal) {
  ForgeryService forger;
  OneConnection ends(&forger);
  ASSERT_TRUE(ends.ok());
  for (const size_t bytes : {size_t{1}, kSmall, kLarge}) {
    const auto result =
        Call<Parcel, Parcel>(ends, kForgeries, {ParcelFor(1, bytes)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL)) << bytes;
    EXPECT_TRUE(Names(result.status, "Failed to parse")) << result.status;
    EXPECT_TRUE(result.responses.empty());
  }
}

// Such frames have a short way of their own.
class AttachedForgeryService final : public Forgeries::Service {
 public:
  rpc::Status Unary(rpc::ServerContext* context, const Parcel* request,
                    Forgery* response) override {
    *response = ForgeryOf(static_cast<size_t>(request->response_bytes()));
    context->set_attachment(context->attachment());
    return rpc::Status::OK;
  }
};

TEST(BesideAnAttachmentTest, AMessageThatIsNoneIsInternal) {
  ParcelService service;
  AttachedForgeryService forger;
  OneConnection ends(&service);
  OneConnection forging_ends(&forger);
  ASSERT_TRUE(ends.ok());
  ASSERT_TRUE(forging_ends.ok());
  const rpc::BufferChain attachment(rpc::Buffer::CopyOf("beside it"));
  for (const size_t bytes : {size_t{1}, kSmall, kLarge}) {
    TimedContext request_context;
    request_context.set_attachment(attachment);
    const rpc::Status refused =
        Exchange<Forgery, Parcel>(ends.channel(), RpcType::NORMAL_RPC,
                                  "/e2e.Parcels/Unary", &request_context,
                                  {ForgeryOf(bytes)})
            .status;
    EXPECT_TRUE(HasCode(refused, rpc::StatusCode::INTERNAL)) << bytes;
    EXPECT_TRUE(Names(refused, "Failed to parse")) << refused;

    TimedContext response_context;
    response_context.set_attachment(attachment);
    const rpc::Status unusable =
        Exchange<Parcel, Parcel>(forging_ends.channel(), RpcType::NORMAL_RPC,
                                 "/e2e.Forgeries/Unary", &response_context,
                                 {ParcelFor(1, bytes)})
            .status;
    EXPECT_TRUE(HasCode(unusable, rpc::StatusCode::INTERNAL)) << bytes;
    EXPECT_TRUE(Names(unusable, "Failed to parse")) << unusable;
    EXPECT_TRUE(ends.IsAlive());
    EXPECT_TRUE(forging_ends.IsAlive());
  }
  EXPECT_EQ(service.begun, 0);
}

TEST_P(BadRequestStreamTest, ALaterRequestThatIsNoMessageIsInternalToo) {
  OneConnection ends(&service_);
  ASSERT_TRUE(ends.ok());
  Forgery good;
  good.set_responses(1);
  for (const size_t bytes : {kSmall, kLarge}) {
    service_.read = 0;
    const auto result = Call<Forgery, Parcel>(
        ends, kParcels, {good, good, ForgeryOf(bytes), good});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL)) << bytes;
    EXPECT_EQ(result.responses.size(), ServerStreams(type_) ? 2u : 0u);
    EXPECT_EQ(service_.read, 2);
  }
}

TEST_P(BadResponseStreamTest, ALaterResponseThatIsNoMessageEndsTheHandler) {
  ForgeryService forger;
  OneConnection ends(&forger);
  ASSERT_TRUE(ends.ok());
  int rounds = 0;
  for (const size_t bytes : {kSmall, kLarge}) {
    Parcel request = ParcelFor(1'000'000, bytes);
    request.set_good_responses(2);
    const auto result = Call<Parcel, Parcel>(ends, kForgeries, {request});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::INTERNAL)) << bytes;
    EXPECT_EQ(result.responses.size(), 2u);
    ++rounds;
    EXPECT_TRUE(Eventually([&] { return forger.cut_off == rounds; }));
  }
}

// ---- Messages over a limit.

constexpr int64_t kLimit = 50'000;

TEST_P(BadInputTest, ARequestOverTheServersLimitIsRefused) {
  for (const int64_t limit : {int64_t{50}, kLimit}) {
    OneConnection ends(&service_, {{"grpc.max_receive_message_length", limit}});
    ASSERT_TRUE(ends.ok());
    const auto bytes = static_cast<size_t>(limit);
    const auto result = CallParcels(ends, {ParcelOf(bytes)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(result.status, absl::StrCat(limit))) << result.status;
    EXPECT_OK(CallParcels(ends, {ParcelOf(bytes - 20)}).status);
  }
}

TEST_P(BadInputTest, ARequestOverTheClientsOwnLimitIsNotSent) {
  for (const int64_t limit : {int64_t{50}, kLimit}) {
    OneConnection ends(&service_, {},
                       {{"grpc.max_send_message_length", limit}});
    ASSERT_TRUE(ends.ok());
    const auto bytes = static_cast<size_t>(limit);
    const auto result = CallParcels(ends, {ParcelOf(bytes)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED));
    EXPECT_TRUE(Names(result.status, absl::StrCat(limit))) << result.status;
    EXPECT_EQ(service_.read, 0);
    EXPECT_OK(CallParcels(ends, {ParcelOf(bytes - 20)}).status);
    service_.read = 0;
  }
}

TEST_P(BadInputTest, AResponseOverALimitIsRefused) {
  const Arguments receive = {{"grpc.max_receive_message_length", kLimit}};
  const Arguments send = {{"grpc.max_send_message_length", kLimit}};
  for (const bool by_client : {false, true}) {
    OneConnection ends(&service_, by_client ? Arguments() : send,
                       by_client ? receive : Arguments());
    ASSERT_TRUE(ends.ok());
    const auto result = CallParcels(ends, {ParcelFor(2, kLimit)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED))
        << by_client;
    EXPECT_TRUE(Names(result.status, absl::StrCat(kLimit))) << result.status;
    EXPECT_TRUE(result.responses.empty());
    const auto next = CallParcels(ends, {ParcelFor(2, kLimit - 20)});
    EXPECT_OK(next.status);
    EXPECT_EQ(next.responses.size(), ServerStreams(type_) ? 2u : 1u);
  }
}

TEST_P(BadInputTest, ASmallResponseOverTheClientsLimitIsRefused) {
  OneConnection ends(&service_, {}, {{"grpc.max_receive_message_length", 100}});
  ASSERT_TRUE(ends.ok());
  const auto result = CallParcels(ends, {ParcelFor(2, 200)});
  EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_OK(CallParcels(ends, {ParcelFor(2, 50)}).status);
}

// ---- Another kind of call than the method's.

TEST_P(BadRequestStreamTest, ALaterRequestOverALimitEndsTheHandler) {
  const Arguments receive = {{"grpc.max_receive_message_length", kLimit}};
  const Arguments send = {{"grpc.max_send_message_length", kLimit}};
  for (const bool by_client : {false, true}) {
    ParcelService service;
    OneConnection ends(&service, by_client ? Arguments() : receive,
                       by_client ? send : Arguments());
    ASSERT_TRUE(ends.ok());
    const auto result = CallParcels(
        ends, {ParcelFor(1), ParcelFor(1), ParcelOf(kLimit), ParcelFor(1)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED))
        << by_client;
    EXPECT_LE(service.read, 2);
    // Waits for handlers, also for one that has not begun yet.
    ends.server().server().Shutdown();
    EXPECT_EQ(service.running, 0);
    EXPECT_EQ(service.cut_off, service.begun);
  }
}

TEST_P(BadResponseStreamTest, ALaterResponseOverALimitEndsTheHandler) {
  const Arguments receive = {{"grpc.max_receive_message_length", kLimit}};
  const Arguments send = {{"grpc.max_send_message_length", kLimit}};
  for (const bool by_client : {false, true}) {
    ParcelService service;
    OneConnection ends(&service, by_client ? Arguments() : send,
                       by_client ? receive : Arguments());
    ASSERT_TRUE(ends.ok());
    Parcel request = ParcelFor(1'000'000, kLimit);
    request.set_good_responses(2);
    const auto result = CallParcels(ends, {request});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::RESOURCE_EXHAUSTED))
        << by_client;
    EXPECT_LE(result.responses.size(), 2u);
    EXPECT_TRUE(Eventually([&] { return service.running == 0; }));
  }
}

// The kinds are agreed on by nobody but the two programs. What is the same on
// the wire goes well.
TEST_P(BadInputTest, ACallOfAnotherKindFailsWhereItDiffers) {
  OneConnection ends(&service_);
  ASSERT_TRUE(ends.ok());
  for (const RpcType method : kAllTypes) {
    for (const size_t requests : {0, 1, 2}) {
      if (requests != 1 && !ClientStreams(type_)) continue;
      // A method that takes one message takes the first.
      const size_t taken = ClientStreams(method) ? requests : 1;
      const size_t responses = ServerStreams(method) ? 2 * taken : 1;
      rpc::StatusCode expected = rpc::StatusCode::OK;
      if (requests == 0 && !ClientStreams(method)) {
        expected = rpc::StatusCode::UNIMPLEMENTED;
      } else if (!ServerStreams(type_) && responses != 1) {
        expected = rpc::StatusCode::UNIMPLEMENTED;
      }
      TimedContext context;
      const auto result = Exchange<Parcel, Parcel>(
          ends.channel(), type_, absl::StrCat(kParcels, MethodOf(method)),
          &context, std::vector<Parcel>(requests, ParcelFor(2)));
      EXPECT_TRUE(HasCode(result.status, expected))
          << requests << " requests for " << MethodOf(method);
      EXPECT_EQ(result.responses.size(), result.status.ok() ? responses : 0);
      EXPECT_TRUE(ends.IsAlive());
    }
  }
}

// ---- Streams that end before their time.

class EarlyEndTest : public testing::Test {
 protected:
  EarlyEndTest() : ends_(&service_) {}

  void SetUp() override {
    ASSERT_TRUE(ends_.ok());
    stub_ = Parcels::NewStub(ends_.channel());
  }

  ParcelService service_;
  OneConnection ends_;
  std::unique_ptr<Parcels::Stub> stub_;
};

TEST_F(EarlyEndTest, NothingIsWrittenAfterWritesDone) {
  for (const bool with_last : {false, true}) {
    service_.read = 0;
    TimedContext context;
    const auto stream = stub_->Chat(&context);
    if (with_last) {
      stream->WriteLast(ParcelFor(1), rpc::WriteOptions());
    } else {
      EXPECT_TRUE(stream->Write(ParcelFor(1)));
      EXPECT_TRUE(stream->WritesDone());
    }
    for (const size_t bytes : {kSmall, kLarge}) {
      EXPECT_FALSE(stream->Write(ParcelOf(bytes)));
    }
    Parcel response;
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_FALSE(stream->Write(ParcelOf(kSmall)));
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_OK(stream->Finish());
    EXPECT_EQ(service_.read, 1);
    EXPECT_TRUE(ends_.IsAlive());
  }
}

TEST_F(EarlyEndTest, AServerMayHaveHadEnoughAndSayOk) {
  for (const size_t bytes : {kSmall, kLarge}) {
    Parcel request = ParcelOf(bytes);
    request.set_end(true);
    request.set_response_bytes(7);
    TimedContext upload_context;
    Parcel response;
    const auto upload = stub_->Upload(&upload_context, &response);
    while (upload->Write(request)) {
    }
    EXPECT_OK(upload->Finish());
    EXPECT_EQ(response.content().data().size(), 7u);
    EXPECT_TRUE(ends_.IsAlive());

    TimedContext chat_context;
    const auto chat = stub_->Chat(&chat_context);
    EXPECT_TRUE(chat->Write(ParcelFor(1)));
    while (chat->Write(request)) {
    }
    EXPECT_TRUE(chat->Read(&response));
    EXPECT_FALSE(chat->Read(&response));
    EXPECT_OK(chat->Finish());
    EXPECT_TRUE(ends_.IsAlive());
  }
}

// Amid messages both ways.
TEST_F(EarlyEndTest, AClientMayCancelAnywhere) {
  for (int round = 0; round < 40; ++round) {
    const size_t bytes = round % 2 == 0 ? kSmall : kLarge;
    Parcel request = ParcelFor(2, bytes);
    *request.mutable_content() = ParcelOf(bytes).content();
    TimedContext context;
    const auto chat = stub_->Chat(&context);
    std::thread writer([&] {
      while (chat->Write(request)) {
      }
    });
    Parcel response;
    for (int i = 0; i < round % 5; ++i) {
      EXPECT_TRUE(chat->Read(&response));
    }
    context.TryCancel();
    writer.join();
    EXPECT_TRUE(HasCode(chat->Finish(), rpc::StatusCode::CANCELLED));
    EXPECT_TRUE(ends_.IsAlive());
  }
  EXPECT_TRUE(Eventually([&] { return service_.running == 0; }));
}

TEST_F(EarlyEndTest, AClientMayDropAStreamAnywhere) {
  for (int round = 0; round < 40; ++round) {
    const size_t bytes = round % 2 == 0 ? kSmall : kLarge;
    TimedContext context;
    const auto chat = stub_->Chat(&context);
    Parcel request = ParcelFor(10, bytes);
    if (round % 5 > 0) {
      EXPECT_TRUE(chat->Write(request));
    }
    Parcel response;
    for (int i = 1; i < round % 5; ++i) {
      EXPECT_TRUE(chat->Read(&response));
    }
    if (round % 3 == 0) {
      chat->WriteLast(ParcelOf(bytes), rpc::WriteOptions());
    }
  }
  EXPECT_TRUE(Eventually([&] { return service_.running == 0; }));
  EXPECT_TRUE(ends_.IsAlive());
}

TEST_P(BadInputTest, AServerThatCancelsEndsTheCallWithCancelled) {
  ParcelService service(
      [](rpc::ServerContext* context) { context->TryCancel(); });
  OneConnection ends(&service);
  ASSERT_TRUE(ends.ok());
  for (const size_t bytes : {kSmall, kLarge}) {
    const auto result = CallParcels(ends, {ParcelOf(bytes), ParcelFor(2)});
    EXPECT_TRUE(HasCode(result.status, rpc::StatusCode::CANCELLED)) << bytes;
    EXPECT_TRUE(result.responses.empty());
  }
  EXPECT_EQ(service.begun, 2);
  EXPECT_TRUE(Eventually([&] { return service.running == 0; }));
}

}  // namespace
}  // namespace e2e
