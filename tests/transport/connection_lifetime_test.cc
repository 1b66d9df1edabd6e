// Goal: a server's connection is given up at its age and when it is idle, and
// what a client does wrong then costs the server no more than time.
// Method: two sides over the software device, without rpc/, whose client does
// nothing when it is asked to go.
#include "rdma_transport/connection_lifetime.h"

#include <algorithm>
#include <memory>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::Side;

TEST(ConnectionLimitsTest, TheAgeVariesByATenth) {
  absl::BitGen random;
  rpc::TransportOptions options;
  options.max_connection_age = absl::Seconds(100);
  options.max_connection_age_grace = absl::Seconds(7);
  absl::Duration least = absl::InfiniteDuration();
  absl::Duration most = absl::ZeroDuration();
  for (int i = 0; i < 1000; ++i) {
    const auto limits = ConnectionLifetime::LimitsOf(options, random);
    least = std::min(least, limits.age);
    most = std::max(most, limits.age);
    EXPECT_EQ(limits.grace, absl::Seconds(7));
    EXPECT_EQ(limits.idle, absl::InfiniteDuration());
  }
  EXPECT_GE(least, absl::Seconds(90));
  EXPECT_LT(least, absl::Seconds(91));
  EXPECT_LE(most, absl::Seconds(110));
  EXPECT_GT(most, absl::Seconds(109));
}

TEST(ConnectionLimitsTest, ByDefaultThereAreNone) {
  absl::BitGen random;
  rpc::TransportOptions options;
  EXPECT_FALSE(ConnectionLifetime::LimitsOf(options, random).any());
  options.max_connection_age_grace = absl::Seconds(1);
  EXPECT_FALSE(ConnectionLifetime::LimitsOf(options, random).any());
  options.max_connection_idle = absl::Seconds(1);
  EXPECT_TRUE(ConnectionLifetime::LimitsOf(options, random).any());
}

class ConnectionLifetimeTest : public ::testing::Test {
 protected:
  ConnectionLifetimeTest() {
    server_.Listen();
    connection_ = client_.ConnectTo(server_);
  }
  ~ConnectionLifetimeTest() override {
    server_.Do([&] { lifetime_ = nullptr; });
  }

  // A stream that stays open.
  void OpenStream() {
    server_.AnswerAtOnce(false);
    client_.Open(connection_, 1, "/test.Test/Method", 0, /*end=*/false);
    EXPECT_TRUE(Eventually([&] { return server_.opened() == 1; }));
    server_.AnswerAtOnce(true);
  }
  void Limit(const ConnectionLifetime::Limits& limits) {
    server_.Do([&] {
      server_.poller().calls().ForEach([&](Call& call) {
        lifetime_ = std::make_unique<ConnectionLifetime>(
            &server_.poller(), call.connection, limits);
      });
    });
    ASSERT_NE(lifetime_, nullptr) << "there is no call";
  }
  bool AnotherCallIsAnswered() {
    const int before = client_.answered() + client_.failed();
    const int answered = client_.answered();
    client_.Open(connection_);
    EXPECT_TRUE(Eventually(
        [&] { return client_.answered() + client_.failed() > before; }));
    return client_.answered() > answered;
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
  std::unique_ptr<ConnectionLifetime> lifetime_;
};

TEST_F(ConnectionLifetimeTest, BeyondItsAgeWhatStillComesIsServed) {
  OpenStream();
  Limit({.age = absl::Milliseconds(20)});
  EXPECT_TRUE(Eventually([&] { return client_.asked_to_go() == 1; }));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(AnotherCallIsAnswered());
  EXPECT_EQ(client_.down() + client_.failed(), 0);
}

TEST_F(ConnectionLifetimeTest, AfterTheGraceCallsEndAndComeNoMore) {
  OpenStream();
  Limit({.age = absl::Milliseconds(20), .grace = absl::Milliseconds(50)});
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client_.asked_to_go(), 1);
  const int opened = server_.opened();
  EXPECT_FALSE(AnotherCallIsAnswered());
  EXPECT_EQ(server_.opened(), opened) << "no handler saw it";
  // This client does not close it.
  EXPECT_TRUE(Eventually([&] { return client_.down() == 1; }));
}

TEST_F(ConnectionLifetimeTest, AConnectionWithACallIsNotIdle) {
  OpenStream();
  Limit({.idle = absl::Milliseconds(40)});
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_EQ(client_.asked_to_go() + client_.down(), 0);
}

TEST_F(ConnectionLifetimeTest, AnIdleOneThatStaysIsClosed) {
  OpenStream();
  // Long enough for what comes between its two ends.
  const absl::Duration idle = absl::Seconds(1);
  Limit({.idle = idle});
  const absl::Time start = absl::Now();
  client_.ResetAll();
  EXPECT_TRUE(Eventually([&] { return client_.asked_to_go() == 1; }));
  EXPECT_GE(absl::Now() - start, idle);
  EXPECT_EQ(client_.down(), 0);
  // It counts from the last call.
  EXPECT_TRUE(AnotherCallIsAnswered());
  EXPECT_TRUE(Eventually([&] { return client_.down() == 1; }));
  EXPECT_GE(absl::Now() - start, 2 * idle);
}

}  // namespace
}  // namespace rdma
