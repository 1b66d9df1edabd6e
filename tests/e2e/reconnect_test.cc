// Goal: a channel finds its server whenever it is there: after a rest, after a
// restart, and when it starts later than the channel; and says what state it is
// in.
// Method: servers that are started and killed around one channel with short
// backoff and idle times.
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

using State = rpc::ConnectivityState;

// An address that nobody listens on, but that a server may take.
std::string FreeAddress() { return ServerUri(PortToComeBackTo()); }

rpc::Status EchoWhenReady(const Client& client, absl::Duration timeout) {
  rpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::Now() + timeout);
  Blob request;
  request.set_data("hello");
  Blob response;
  return client.stub().Echo(&context, request, &response);
}

TEST(IdleTest, AConnectionClosesWhenIdleAndOpensWithTheNextCall) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client observer(server.address());
  ASSERT_OK(observer.Echo(10));
  const int64_t without = observer.Observe().connections();
  const Client client(server.address(), {{"grpc.client_idle_timeout_ms", 500}});
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(client.Echo(10));
    EXPECT_EQ(client.channel().GetState(false), State::kReady);
    EXPECT_TRUE(client.channel().WaitForStateChange(
        State::kReady, absl::Now() + absl::Seconds(10)));
    EXPECT_EQ(client.channel().GetState(false), State::kIdle);
    // The server's side of it is gone, too.
    EXPECT_TRUE(Eventually(
        [&] { return observer.Observe().connections() == without; }));
  }
}

TEST(IdleTest, AConnectionWithACallIsNotIdle) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client releaser(server.address());
  const Client client(server.address(), {{"grpc.client_idle_timeout_ms", 50}});
  std::thread caller([&] { EXPECT_OK(client.Block(absl::Seconds(30))); });
  EXPECT_TRUE(Eventually([&] { return releaser.Observe().blocked() == 1; }));
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_OK(releaser.ReleaseBlocked());
  caller.join();
}

TEST(ReconnectTest, AServerThatStartsLaterIsReachedByAWaitingCall) {
  const std::string address = FreeAddress();
  const Client client(address, QuickReconnect());
  rpc::Status status;
  std::thread caller(
      [&] { status = EchoWhenReady(client, absl::Seconds(30)); });
  absl::SleepFor(absl::Milliseconds(200));
  const PeerProcess server = PeerProcess::Serve({}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  caller.join();
  EXPECT_OK(status);
}

TEST(ReconnectTest, CallsFailFastWhileBackingOff) {
  const std::string address = FreeAddress();
  const Client client(address, {{"grpc.initial_reconnect_backoff_ms", 60'000},
                                {"grpc.max_reconnect_backoff_ms", 60'000}});
  EXPECT_TRUE(HasCode(client.Echo(10), rpc::StatusCode::UNAVAILABLE));
  EXPECT_EQ(client.channel().GetState(false), State::kTransientFailure);
  const PeerProcess server = PeerProcess::Serve({}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  // Whoever asks meanwhile is told why, before the call's deadline.
  const rpc::Status status = client.Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_NE(status.error_message().find("nothing listens"), std::string::npos)
      << status;
}

TEST(ReconnectTest, CallsSucceedAfterABackoff) {
  const std::string address = FreeAddress();
  const Client client(address, {{"grpc.initial_reconnect_backoff_ms", 300},
                                {"grpc.min_reconnect_backoff_ms", 300},
                                {"grpc.max_reconnect_backoff_ms", 300}});
  EXPECT_TRUE(HasCode(client.Echo(10), rpc::StatusCode::UNAVAILABLE));
  const PeerProcess server = PeerProcess::Serve({}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  EXPECT_TRUE(Eventually([&] { return client.Echo(10).ok(); }));
  EXPECT_EQ(client.channel().GetState(false), State::kReady);
}

TEST(ReconnectTest, ABackoffThatIsResetIsOver) {
  const std::string address = FreeAddress();
  const Client client(address, {{"grpc.initial_reconnect_backoff_ms", 60'000},
                                {"grpc.max_reconnect_backoff_ms", 60'000}});
  EXPECT_TRUE(HasCode(client.Echo(10), rpc::StatusCode::UNAVAILABLE));
  const PeerProcess server = PeerProcess::Serve({}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  EXPECT_TRUE(HasCode(client.Echo(10), rpc::StatusCode::UNAVAILABLE));
  rpc::experimental::ChannelResetConnectionBackoff(&client.channel());
  EXPECT_OK(EchoWhenReady(client, absl::Seconds(30)));
}

TEST(ReconnectTest, ARestartedServerIsReached) {
  const std::string address = FreeAddress();
  PeerProcess server = PeerProcess::Serve({}, address);
  const Client client(address, QuickReconnect());
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(EchoWhenReady(client, absl::Seconds(30)));
    server.Kill();
    // The channel notices without a call.
    EXPECT_TRUE(Eventually(
        [&] { return client.channel().GetState(false) != State::kReady; }));
    server = PeerProcess::Serve({}, address);
    ASSERT_TRUE(server.ok()) << server.address();
  }
  EXPECT_TRUE(
      client.channel().WaitForConnected(absl::Now() + absl::Seconds(20)));
  EXPECT_OK(client.Echo(100'000, 100'000));
}

TEST(ReconnectTest, ACallOnAConnectionThatBrokeSaysThatItMayHaveRun) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), QuickReconnect());
  const Client observer(server.address());
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + absl::Seconds(30));
  rpc::Status status;
  std::thread caller([&] {
    Nothing response;
    status = client.stub().Block(&context, Blob(), &response);
  });
  EXPECT_TRUE(Eventually([&] { return observer.Observe().blocked() == 1; }));
  server.Kill();
  caller.join();
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(context.may_have_run());
}

TEST(ReconnectTest, ACallThatFoundNobodySaysThatItDidNotRun) {
  const Client client(FreeAddress(), QuickReconnect());
  rpc::ClientContext context;
  context.set_deadline(absl::Now() + absl::Seconds(30));
  Blob response;
  EXPECT_TRUE(HasCode(client.stub().Echo(&context, Blob(), &response),
                      rpc::StatusCode::UNAVAILABLE));
  EXPECT_FALSE(context.may_have_run());
}

}  // namespace
}  // namespace e2e
