// Goal: whatever a network does, a call ends with its answer or with a status
// that says so, in time, and calls go through again once the network does.
// Method: links that are taken down, and packets that are lost or late, between
// a client and a server in a process of its own.
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/network.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr size_t kMiB = 1 << 20;

class NetworkFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Network::WhyNot(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    network_.emplace();
    server_.emplace(PeerProcess::Serve());
    ASSERT_TRUE(server_->ok()) << server_->address();
    client_.emplace(server_->address(), QuickReconnect());
    ASSERT_OK(client_->Echo(10));
  }

  // Has `harm` happen while a call without a deadline runs, which must not
  // outlive it by more than `patience`.
  template <typename Harm>
  void ExpectUnavailableAfter(Harm harm, absl::Duration patience) {
    const Client observer(server_->address());
    rpc::Status status;
    absl::Time end;
    std::thread caller([&] {
      status = client_->Block(absl::InfiniteDuration());
      end = absl::Now();
    });
    EXPECT_TRUE(Eventually([&] { return observer.Observe().blocked() == 1; }));
    const absl::Time start = absl::Now();
    harm();
    caller.join();
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
    EXPECT_LT(end - start, patience);
    RecordProperty("milliseconds",
                   static_cast<int>(absl::ToInt64Milliseconds(end - start)));
  }

  // Also the server has to be rid of what broke.
  void ExpectGoodAsNew() {
    EXPECT_TRUE(
        Eventually([&] { return client_->Echo(10, 0, absl::Seconds(5)).ok(); },
                   absl::Seconds(60)));
    EXPECT_OK(client_->Echo(100'000, kMiB));
    EXPECT_TRUE(
        Eventually([&] { return client_->Observe().connections() == 1; },
                   absl::Seconds(60)))
        << client_->Observe().connections();
  }

  std::optional<Network> network_;
  std::optional<PeerProcess> server_;
  std::optional<Client> client_;
};

TEST_F(NetworkFaultTest, ALinkThatGoesDownEndsItsCallsUntilItIsUpAgain) {
  ExpectUnavailableAfter([&] { network_->SetLink(false); }, absl::Seconds(5));
  const absl::Time start = absl::Now();
  EXPECT_TRUE(HasCode(client_->Echo(10), rpc::StatusCode::UNAVAILABLE));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  network_->SetLink(true);
  ExpectGoodAsNew();
}

TEST_F(NetworkFaultTest, AnIdleConnectionsLinkMayGoDownAndUp) {
  for (int i = 0; i < 3; ++i) {
    network_->SetLink(false);
    network_->SetLink(true);
    ExpectGoodAsNew();
  }
}

TEST_F(NetworkFaultTest, LostPacketsAreSentAgain) {
  network_->Impair("loss 1%");
  for (int i = 0; i < 100; ++i) ASSERT_OK(client_->Echo(100)) << i;
  for (int i = 0; i < 4; ++i) ASSERT_OK(client_->Echo(100'000, kMiB)) << i;
}

// With messages before and behind the one that is sent again.
TEST_F(NetworkFaultTest, LostPacketsAmongManyMessages) {
  network_->Impair("loss 1%");
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 4; ++j) EXPECT_OK(client_->Echo(100, 256 * 1024));
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(NetworkFaultTest, ConnectionsAreMadeThoughPacketsAreLost) {
  network_->Impair("loss 5%");
  for (int i = 0; i < 5; ++i) {
    const Client client(
        server_->address(),
        Arguments{{"grpc.client_idle_timeout_ms", 1'000'000 + i}});
    EXPECT_OK(client.Echo(10)) << i;
  }
}

// There and back.
TEST_F(NetworkFaultTest, LatePacketsDelayCallsAndTheirDeadlinesHold) {
  network_->Impair("delay 100ms");
  absl::Time start = absl::Now();
  EXPECT_OK(client_->Echo(10));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(200));
  EXPECT_OK(client_->Echo(100'000, kMiB));
  start = absl::Now();
  EXPECT_TRUE(HasCode(client_->Echo(10, 0, absl::Milliseconds(150)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  EXPECT_OK(Client(server_->address()).Echo(10));
}

// docs/hardware.md says how long retries last; keepalive finds the rest out.
TEST_F(NetworkFaultTest, APathThatCarriesNothingIsNoticed) {
  client_.emplace(server_->address(),
                  Arguments{{"grpc.initial_reconnect_backoff_ms", 5},
                            {"grpc.min_reconnect_backoff_ms", 5},
                            {"grpc.max_reconnect_backoff_ms", 20},
                            {"grpc.keepalive_time_ms", 500},
                            {"grpc.keepalive_timeout_ms", 1000}});
  ASSERT_OK(client_->Echo(10));
  ExpectUnavailableAfter([&] { network_->Impair("loss 100%"); },
                         absl::Seconds(10));
  EXPECT_TRUE(HasCode(client_->Echo(10, 0, absl::Seconds(1)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  network_->Impair("delay 0ms");
  EXPECT_TRUE(
      Eventually([&] { return client_->Echo(10, 0, absl::Seconds(5)).ok(); },
                 absl::Seconds(60)));
}

}  // namespace
}  // namespace e2e
