// Goal: a server that limits how long its connections last does not fail a
// call by it, but for those that are still running when the grace is over.
// Method: short limits, and callers that never pause; every call is accounted
// for on both sides.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/receipts.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

using State = rpc::ConnectivityState;

rpc::TransportOptions Age(absl::Duration age,
                          absl::Duration grace = absl::InfiniteDuration()) {
  rpc::TransportOptions options;
  options.max_connection_age = age;
  options.max_connection_age_grace = grace;
  return options;
}

TEST(ConnectionAgeTest, NoCallFailsWhileConnectionsComeAndGo) {
  constexpr size_t kConnections = 20;
  ReceiptServer server(Age(absl::Milliseconds(20)));
  ReceiptClient client(server.address());
  std::vector<std::thread> callers;
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (server.connections() < kConnections && absl::Now() < give_up) {
        // Two at a time: one begins while others run.
        const uint64_t first = client.Start();
        const Receipt second = client.Call();
        EXPECT_TRUE(second.status.ok()) << second.status;
        const Receipt receipt = client.Finish(first);
        EXPECT_TRUE(receipt.status.ok()) << receipt.status;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(server.connections(), kConnections);
}

TEST(ConnectionAgeTest, ACallThatRunsGoesOnWithoutAnEndToTheGrace) {
  ReceiptServer server(Age(absl::Milliseconds(50)));
  ReceiptClient client(server.address());
  server.Answer(false);
  const uint64_t held = client.Start();
  EXPECT_TRUE(Eventually([&] { return server.held() == 1; }));
  EXPECT_TRUE(client.transport().WaitForStateChange(
      State::kReady, absl::Now() + absl::Seconds(20)));
  // New ones go elsewhere meanwhile.
  const uint64_t another = client.Start();
  EXPECT_TRUE(Eventually([&] { return server.held() == 2; }));
  EXPECT_EQ(server.connections(), 2u);
  absl::SleepFor(absl::Milliseconds(200));
  server.Answer(true);
  EXPECT_TRUE(client.Finish(held).status.ok());
  EXPECT_TRUE(client.Finish(another).status.ok());
}

TEST(ConnectionAgeTest, ACallThatRunsLongerThanTheGraceIsEnded) {
  ReceiptServer server(Age(absl::Milliseconds(50), absl::Milliseconds(100)));
  ReceiptClient client(server.address());
  server.Answer(false);
  const uint64_t held = client.Start();
  EXPECT_TRUE(Eventually([&] { return server.held() == 1; }));
  server.Answer(false);
  const Receipt receipt = client.Finish(held);
  EXPECT_EQ(receipt.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(receipt.may_have_run);
}

TEST(ConnectionAgeTest, AnIdleConnectionGoesAndComesBackWithTheNextCall) {
  rpc::TransportOptions options;
  options.max_connection_idle = absl::Milliseconds(200);
  ReceiptServer server(options);
  ReceiptClient client(server.address());
  for (size_t i = 1; i <= 3; ++i) {
    const absl::Time start = absl::Now();
    EXPECT_TRUE(client.Call().status.ok());
    EXPECT_EQ(server.connections(), i);
    EXPECT_TRUE(client.transport().WaitForStateChange(
        State::kReady, start + absl::Seconds(20)));
    EXPECT_GE(absl::Now() - start, options.max_connection_idle);
    EXPECT_EQ(client.transport().GetState(false), State::kIdle);
  }
}

TEST(ConnectionAgeTest, TheArgumentsAreTheServers) {
  Server server({{"grpc.max_connection_age_ms", 100},
                 {"grpc.max_connection_age_grace_ms", 10'000},
                 {"grpc.max_connection_idle_ms", 10'000}});
  ASSERT_TRUE(server.ok()) << server.status();
  // A client's have no effect.
  const Client client(server.address(), {{"grpc.max_connection_age_ms", 1}});
  for (int i = 0; i < 5; ++i) {
    EXPECT_OK(client.Echo(100, 200'000));
    EXPECT_TRUE(client.channel().WaitForStateChange(
        State::kReady, absl::Now() + absl::Seconds(10)));
  }
}

}  // namespace
}  // namespace e2e
