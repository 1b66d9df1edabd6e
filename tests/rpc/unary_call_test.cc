// Unary calls that go well, and the status of those that do not: by every
// combination of client API, server API and threading.
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

enum class ClientApi { kBlocking, kFunction, kReactor };
enum class ServerApi { kSync, kCallback };

class WaitingReactor final : public ClientUnaryReactor {
 public:
  Status Wait() {
    done_.WaitForNotification();
    return status_;
  }
  bool initial_metadata_seen() const { return initial_metadata_seen_; }

 private:
  void OnReadInitialMetadataDone(bool ok) override {
    initial_metadata_seen_ = ok;
  }
  void OnDone(const Status& status) override {
    status_ = status;
    done_.Notify();
  }

  bool initial_metadata_seen_ = false;
  Status status_;
  absl::Notification done_;
};

using Param = std::tuple<ClientApi, ServerApi, int>;

class UnaryCallTest : public ::testing::TestWithParam<Param> {
 protected:
  UnaryCallTest() { Restart({.threads = std::get<2>(GetParam())}); }

  void Restart(LoopbackOptions options) {
    echo_.reset();
    Service* const service = std::get<1>(GetParam()) == ServerApi::kSync
                                 ? static_cast<Service*>(&sync_)
                                 : &callback_;
    options.threads = std::get<2>(GetParam());
    echo_ = std::make_unique<EchoServer>(options, service);
  }

  Status Say(ClientContext* context, const SayRequest& request,
             SayResponse* response) {
    Echo::Stub& stub = echo_->stub();
    switch (std::get<0>(GetParam())) {
      case ClientApi::kBlocking:
        return stub.Say(context, request, response);
      case ClientApi::kFunction: {
        Status result;
        absl::Notification done;
        stub.async()->Say(context, &request, response, [&](Status status) {
          result = std::move(status);
          done.Notify();
        });
        done.WaitForNotification();
        return result;
      }
      case ClientApi::kReactor: {
        WaitingReactor reactor;
        stub.async()->Say(context, &request, response, &reactor);
        reactor.StartCall();
        return reactor.Wait();
      }
    }
    return Status();
  }

  SyncEcho sync_;
  CallbackEcho callback_;
  std::unique_ptr<EchoServer> echo_;
};

TEST_P(UnaryCallTest, CarriesMessagesBothWays) {
  for (int i = 0; i < 100; ++i) {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.set_text("call " + std::to_string(i));
    request.add_numbers(i);
    const Status status = Say(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(response.text(), request.text());
    ASSERT_EQ(response.numbers_size(), 1);
    EXPECT_EQ(response.numbers(0), i);
    EXPECT_EQ(response.peer(), "ipv4:127.0.0.1:40000");
    EXPECT_EQ(response.deadline_unix_us(), 0);
    EXPECT_TRUE(context.may_have_run());
    EXPECT_TRUE(context.GetServerInitialMetadata().empty());
    EXPECT_TRUE(context.GetServerTrailingMetadata().empty());
  }
}

TEST_P(UnaryCallTest, EmptyMessages) {
  ClientContext context;
  SayResponse response;
  response.set_text("left over");
  ASSERT_TRUE(Say(&context, SayRequest(), &response).ok());
  EXPECT_EQ(response.text(), "");
}

TEST_P(UnaryCallTest, SizesAroundTheScratchMemory) {
  for (const size_t size :
       {1u, 55u, 56u, 57u, 1000u, 1017u, 1018u, 1019u, 1020u, 1021u, 1022u,
        1023u, 1024u, 1025u, 4096u, 65536u, 3000000u}) {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.mutable_payload()->assign(size, 'p');
    request.mutable_payload()->back() = 'q';
    const Status status = Say(&context, request, &response);
    ASSERT_TRUE(status.ok()) << size << ": " << status;
    EXPECT_EQ(response.payload(), request.payload()) << size;
  }
}

TEST_P(UnaryCallTest, MessagesInPieces) {
  Restart({.piece_bytes = 7});
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.mutable_payload()->assign(10000, 'p');
  for (int i = 0; i < 100; ++i) request.add_numbers(int64_t{1} << (i % 63));
  const Status status = Say(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(response.payload(), request.payload());
  EXPECT_EQ(response.numbers_size(), 100);
  EXPECT_EQ(response.numbers(62), int64_t{1} << 62);
}

TEST_P(UnaryCallTest, StatusWithTextAndDetails) {
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.set_text("not seen");
  request.set_status_code(StatusCode::NOT_FOUND);
  request.set_status_message("no such \xc3\xa9l\xc3\xa9ment\n\t");
  request.set_status_details(std::string("\0\1\2\xff", 4));
  const Status status = Say(&context, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), request.status_message());
  EXPECT_EQ(status.error_details(), request.status_details());
  EXPECT_TRUE(context.may_have_run());
}

TEST_P(UnaryCallTest, EveryStatusCode) {
  for (int code = 1; code <= 16; ++code) {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.set_status_code(code);
    const Status status = Say(&context, request, &response);
    EXPECT_EQ(status.error_code(), static_cast<StatusCode>(code));
    EXPECT_EQ(status.error_message(), "");
  }
  // After errors the next call goes well.
  ClientContext context;
  SayResponse response;
  EXPECT_TRUE(Say(&context, SayRequest(), &response).ok());
}

// With OK comes the response, and no text, in a frame of any kind.
TEST_P(UnaryCallTest, TextOfAnOkStatusStaysOnTheServer) {
  for (const bool with_metadata : {false, true}) {
    ClientContext context;
    SayRequest request;
    SayResponse response;
    request.set_text("seen");
    request.set_status_message("fine");
    request.set_status_details("details");
    if (with_metadata) context.AddMetadata("user", "ada");
    request.set_echo_metadata(with_metadata);
    const Status status = Say(&context, request, &response);
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(status.error_message(), "");
    EXPECT_EQ(status.error_details(), "");
    EXPECT_EQ(response.text(), "seen");
    EXPECT_EQ(context.GetServerTrailingMetadata().size(),
              with_metadata ? 1 : 0);
  }
}

TEST_P(UnaryCallTest, CodeThatDoesNotExistBecomesUnknown) {
  ClientContext context;
  SayRequest request;
  SayResponse response;
  request.set_status_code(4711);
  request.set_status_message("odd");
  const Status status = Say(&context, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNKNOWN);
  EXPECT_EQ(status.error_message(), "odd");
}

TEST_P(UnaryCallTest, MetadataBothWays) {
  ClientContext context;
  SayRequest request;
  SayResponse response;
  const std::string bytes("\0\xff\n binary", 10);
  context.AddMetadata("user", "ada");
  context.AddMetadata("user", "bob");
  context.AddMetadata("token-bin", bytes);
  context.AddMetadata("empty", "");
  request.set_echo_metadata(true);
  const Status status = Say(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status;
  const auto& initial = context.GetServerInitialMetadata();
  ASSERT_EQ(initial.size(), 4u);
  EXPECT_EQ(initial.count("user"), 2u);
  EXPECT_EQ(initial.find("user")->second, "ada");
  EXPECT_EQ(initial.find("token-bin")->second, bytes);
  EXPECT_EQ(initial.find("empty")->second, "");
  const auto& trailing = context.GetServerTrailingMetadata();
  ASSERT_EQ(trailing.size(), 4u);
  EXPECT_EQ(trailing.find("trailing-token-bin")->second, bytes);
}

TEST_P(UnaryCallTest, TrailingMetadataComeWithErrors) {
  ClientContext context;
  SayRequest request;
  SayResponse response;
  context.AddMetadata("user", "ada");
  request.set_echo_metadata(true);
  request.set_status_code(StatusCode::ABORTED);
  request.set_status_message("lost a race");
  const Status status = Say(&context, request, &response);
  EXPECT_EQ(status.error_code(), StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "lost a race");
  EXPECT_EQ(context.GetServerInitialMetadata().size(), 1u);
  EXPECT_EQ(context.GetServerTrailingMetadata().find("trailing-user")->second,
            "ada");
}

TEST_P(UnaryCallTest, IllegalMetadataIsInternalAndNotSent) {
  const std::pair<std::string, std::string> kIllegal[] = {
      {"", "value"},      {"Upper", "value"},     {"sp ace", "value"},
      {":path", "value"}, {"k\xc3\xa9y", "v"},    {"key", "new\nline"},
      {"key", "\x7f"},    {"key", "caf\xc3\xa9"},
  };
  for (const auto& [key, value] : kIllegal) {
    ClientContext context;
    SayResponse response;
    context.AddMetadata(key, value);
    const Status status = Say(&context, SayRequest(), &response);
    EXPECT_EQ(status.error_code(), StatusCode::INTERNAL) << key;
    EXPECT_NE(status.error_message().find("illegal"), std::string::npos);
    EXPECT_FALSE(context.may_have_run());
  }
  EXPECT_EQ(sync_.calls.load() + callback_.calls.load(), 0);
}

TEST_P(UnaryCallTest, DeadlineReachesTheServer) {
  ClientContext context;
  SayResponse response;
  const absl::Time deadline = absl::Now() + absl::Hours(1);
  context.set_deadline(absl::ToChronoTime(deadline));
  ASSERT_TRUE(Say(&context, SayRequest(), &response).ok());
  EXPECT_NEAR(response.deadline_unix_us(), absl::ToUnixMicros(deadline), 1);
}

TEST_P(UnaryCallTest, UnknownMethod) {
  const internal::RpcMethod method("/rpc.testing.Echo/Nothing",
                                   internal::RpcMethod::NORMAL_RPC,
                                   echo_->channel());
  ClientContext context;
  SayResponse response;
  const Status status = internal::BlockingUnaryCall<SayRequest, SayResponse>(
      echo_->channel().get(), method, &context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << status;
}

TEST_P(UnaryCallTest, MethodThatTheServiceDoesNotOverride) {
  ClientContext context;
  SayResponse response;
  const Status status = echo_->stub().Other(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << status;
}

TEST_P(UnaryCallTest, ContextServesOneCall) {
  ClientContext context;
  SayResponse response;
  ASSERT_TRUE(Say(&context, SayRequest(), &response).ok());
  const Status status = Say(&context, SayRequest(), &response);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  context.TryCancel();  // has no effect
}

std::string ParamName(const ::testing::TestParamInfo<Param>& info) {
  constexpr const char* kClients[] = {"Blocking", "Function", "Reactor"};
  constexpr const char* kServers[] = {"Sync", "Callback"};
  return std::string(kClients[static_cast<int>(std::get<0>(info.param))]) +
         kServers[static_cast<int>(std::get<1>(info.param))] +
         (std::get<2>(info.param) == 0 ? "OneThread" : "Threads");
}

INSTANTIATE_TEST_SUITE_P(
    Apis, UnaryCallTest,
    ::testing::Combine(
        ::testing::Values(ClientApi::kBlocking, ClientApi::kFunction,
                          ClientApi::kReactor),
        ::testing::Values(ServerApi::kSync, ServerApi::kCallback),
        ::testing::Values(0, 4)),
    ParamName);

}  // namespace
}  // namespace rpc::testing
