// Goal: a peer that dies, or stops, in the midst of a transfer in either
// direction costs its calls a status in time, and the survivor nothing.
// Method: peer processes that get SIGKILL at moments spread over the time that
// large transfers take, and SIGSTOP.
#include <cstdint>
#include <latch>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr int64_t kMiB = 1 << 20;
const size_t kLarge = TheDeviceUnderTest().large_bytes;
const int kRounds = TheDeviceUnderTest().Rounds(12);
constexpr int64_t kBudget = 256 * kMiB;
const Arguments kBudgetArguments = {{"verbena.memory_budget_bytes", kBudget}};

absl::Duration RandomMoment(std::mt19937_64& random) {
  return absl::Microseconds(random() % 30'000);
}

// A large call against a server that dies meanwhile.
void KillServerDuring(rpc::Status (*call)(const Client&)) {
  std::mt19937_64 random(20261121);
  int failed = 0;
  for (int i = 0; i < kRounds; ++i) {
    PeerProcess server = PeerProcess::Serve();
    ASSERT_TRUE(server.ok()) << server.address();
    const Client client(server.address(), kBudgetArguments);
    ASSERT_OK(client.Echo(10));
    rpc::Status status;
    absl::Time end;
    std::thread caller([&] {
      // Until the server is dead.
      while ((status = call(client)).ok()) {
      }
      end = absl::Now();
    });
    absl::SleepFor(RandomMoment(random));
    server.Kill();
    const absl::Time killed = absl::Now();
    caller.join();
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
    // By the hang-up, not by a time limit; attachments are made meanwhile.
    EXPECT_LT(end - killed, absl::Seconds(10));
    ++failed;
    // What the call held is free again.
    const absl::StatusOr<rpc::Buffer> buffer =
        client.channel().AllocateBuffer(kBudget / 2);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
  }
  EXPECT_EQ(failed, kRounds);
}

TEST(PeerDeathTest, TheServerDiesWhileItReadsARequest) {
  KillServerDuring([](const Client& client) {
    return client.Consume(0, kLarge, absl::Seconds(20));
  });
}

TEST(PeerDeathTest, TheServerDiesWhileTheClientReadsAResponse) {
  KillServerDuring([](const Client& client) {
    return client.Produce(0, kLarge, absl::Seconds(20));
  });
}

// Clients that die while they transfer; `server` has to be as good as new.
void KillClients(PeerProcess (*start)(const std::string&, uint64_t)) {
  const PeerProcess server = PeerProcess::Serve(kBudgetArguments);
  ASSERT_TRUE(server.ok()) << server.address();
  const Client witness(server.address());
  ASSERT_OK(witness.Echo(10));
  const int64_t connections = witness.Observe().connections();
  std::mt19937_64 random(20261122);
  for (int i = 0; i < kRounds; ++i) {
    PeerProcess client = start(server.address(), kLarge);
    absl::SleepFor(RandomMoment(random));
    client.Kill();
    EXPECT_OK(witness.Echo(10));
  }
  EXPECT_TRUE(Eventually([&] {
    return witness.Observe().connections() == connections;
  })) << witness.Observe().connections()
      << ", before " << connections;
  EXPECT_OK(witness.Consume(0, kBudget / 2));
  EXPECT_OK(witness.Produce(0, kBudget / 2));
}

TEST(PeerDeathTest, AClientDiesWhileTheServerReadsItsRequest) {
  KillClients(&PeerProcess::Upload);
}

TEST(PeerDeathTest, AClientDiesWhileItReadsAResponse) {
  KillClients(&PeerProcess::Download);
}

TEST(StoppedPeerTest, CallsEndAtTheirDeadlineAndGoOnAfterwards) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), kBudgetArguments);
  ASSERT_OK(client.Echo(10));
  constexpr absl::Duration kDeadline = absl::Milliseconds(300);
  for (int i = 0; i < 3; ++i) {
    server.Stop();
    for (const size_t bytes : {size_t{100}, size_t{100'000}, kLarge}) {
      const absl::Time start = absl::Now();
      EXPECT_TRUE(HasCode(client.Consume(0, bytes, kDeadline),
                          rpc::StatusCode::DEADLINE_EXCEEDED))
          << bytes;
      // Making the attachment is part of it.
      EXPECT_LT(absl::Now() - start, absl::Seconds(5));
    }
    server.Continue();
    EXPECT_OK(client.Echo(10));
    EXPECT_OK(client.Echo(0, kLarge));
  }
}

TEST(StoppedPeerTest, ManySmallCallsToAStoppedServerEndInTime) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  ASSERT_OK(client.Echo(10));
  server.Stop();
  // Far more than there are credits.
  std::vector<std::thread> threads;
  for (int i = 0; i < 64; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(HasCode(client.Echo(1000, 0, absl::Milliseconds(500)),
                          rpc::StatusCode::DEADLINE_EXCEEDED));
    });
  }
  for (std::thread& thread : threads) thread.join();
  server.Continue();
  EXPECT_OK(client.Echo(1000));
}

TEST(StoppedPeerTest, AStoppedServerHoldsTheMemoryOfItsCallsForTheGraceOnly) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  Arguments arguments = kBudgetArguments;
  arguments["verbena.offer_grace_ms"] = 1000;
  const Client client(server.address(), arguments);
  ASSERT_OK(client.Echo(10));
  constexpr size_t kMostOfIt = kBudget / 4 * 3;
  const auto is_free = [&] {
    return client.channel().AllocateBuffer(kMostOfIt).ok();
  };
  ASSERT_TRUE(is_free());
  server.Stop();
  EXPECT_TRUE(HasCode(client.Consume(0, kMostOfIt, absl::Milliseconds(200)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  // The call is over; its peer may still read.
  EXPECT_FALSE(is_free());
  const absl::Time give_up = absl::Now() + absl::Seconds(10);
  while (!is_free() && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_TRUE(is_free());
  server.Continue();
  EXPECT_OK(client.Consume(0, kMostOfIt));
}

constexpr absl::Duration kKeepaliveTime = absl::Milliseconds(200);
const Arguments kKeepaliveArguments = {{"grpc.keepalive_time_ms", 200},
                                       {"grpc.keepalive_timeout_ms", 500}};

TEST(KeepaliveTest, ACallWithoutADeadlineOnAStoppedServerEnds) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), kKeepaliveArguments);
  ASSERT_OK(client.Echo(10));
  rpc::Status status;
  absl::Time end;
  std::thread caller([&] {
    status = client.Block(absl::InfiniteDuration());
    end = absl::Now();
  });
  while (client.Observe().blocked() == 0) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  const absl::Time start = absl::Now();
  server.Stop();
  caller.join();
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_GT(end - start, absl::Milliseconds(500));
  EXPECT_LT(end - start, absl::Seconds(10));
  // The next server does not wait for the one that is stopped.
  EXPECT_TRUE(HasCode(client.Echo(10, 0, kKeepaliveTime * 10),
                      rpc::StatusCode::UNAVAILABLE) ||
              HasCode(client.Echo(10, 0, kKeepaliveTime * 10),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  server.Continue();
  EXPECT_OK(client.Echo(10));
}

// The send queue is full of frames that it does not take, and credits are left:
// there is no room to ask for a sign of life.
TEST(KeepaliveTest, ManyCallsOnAStoppedServerEnd) {
  constexpr int kCallers = 450;
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), kKeepaliveArguments);
  std::vector<rpc::Status> statuses(kCallers);
  std::latch warm(kCallers);
  absl::Notification stopped;
  std::vector<std::thread> callers;
  callers.reserve(kCallers);
  for (rpc::Status& status : statuses) {
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        status = client.Echo(10, 0, absl::Minutes(1));
      }
      warm.count_down();
      stopped.WaitForNotification();
      if (status.ok()) status = client.Echo(10, 0, absl::Minutes(1));
    });
  }
  warm.wait();
  server.Stop();
  const absl::Time start = absl::Now();
  stopped.Notify();
  for (std::thread& caller : callers) caller.join();
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  for (const rpc::Status& status : statuses) {
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  }
  server.Continue();
  EXPECT_OK(client.Echo(10));
}

TEST(KeepaliveTest, AServerForgetsAStoppedClient) {
  Arguments arguments = kKeepaliveArguments;
  arguments["grpc.keepalive_permit_without_calls"] = 1;
  PeerProcess server = PeerProcess::Serve(arguments);
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  const auto connections = [&] { return client.Observe().connections(); };
  const int64_t before = connections();
  PeerProcess idle = PeerProcess::Download(server.address(), 1);
  ASSERT_EQ(idle.address(), "started");
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  while (connections() == before && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_GT(connections(), before);
  idle.Stop();
  while (connections() > before && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_EQ(connections(), before);
}

// Returns how long after its last sign of life the client noticed.
absl::Duration NoticeAStoppedServer(const Arguments& arguments) {
  PeerProcess server = PeerProcess::Serve();
  EXPECT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), arguments);
  const absl::Time start = absl::Now();
  EXPECT_OK(client.Echo(10));
  server.Stop();
  const auto is_ready = [&] {
    return client.channel().GetState(false) == rpc::ConnectivityState::kReady;
  };
  EXPECT_TRUE(Eventually([&] { return !is_ready(); }));
  return absl::Now() - start;
}

TEST(KeepaliveTest, WithoutCallsAPeerIsAskedRarely) {
  if (TheDeviceUnderTest().software) GTEST_SKIP() << "it is not asked at all";
  EXPECT_GT(NoticeAStoppedServer(kKeepaliveArguments), 6 * kKeepaliveTime);
}

TEST(KeepaliveTest, WithoutCallsAPeerWhoseDeathShowsIsNotAsked) {
  if (!TheDeviceUnderTest().software) GTEST_SKIP() << "it does not show";
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), kKeepaliveArguments);
  ASSERT_OK(client.Echo(10));
  server.Stop();
  absl::SleepFor(10 * kKeepaliveTime);
  EXPECT_EQ(client.channel().GetState(false), rpc::ConnectivityState::kReady);
  server.Continue();
  EXPECT_OK(client.Echo(10));
}

TEST(KeepaliveTest, WithoutCallsAPeerIsAskedAsOftenWhereThatIsWished) {
  EXPECT_LT(NoticeAStoppedServer({{"grpc.keepalive_time_ms", 1000},
                                  {"grpc.keepalive_timeout_ms", 200},
                                  {"grpc.keepalive_permit_without_calls", 1}}),
            absl::Seconds(5));
}

TEST(KeepaliveTest, ACallOnAConnectionThatAskedRarelyEndsAsSoon) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), {{"grpc.keepalive_time_ms", 1000},
                                         {"grpc.keepalive_timeout_ms", 200}});
  ASSERT_OK(client.Echo(10));
  absl::SleepFor(absl::Seconds(3));  // two looks
  server.Stop();
  const absl::Time start = absl::Now();
  EXPECT_TRUE(
      HasCode(client.Block(absl::Seconds(20)), rpc::StatusCode::UNAVAILABLE));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

// Though none is open when it is looked for a sign of life.
TEST(KeepaliveTest, ShortCallsToAStoppedServerFindThatOut) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), kKeepaliveArguments);
  ASSERT_OK(client.Echo(10));
  absl::SleepFor(4 * kKeepaliveTime);
  server.Stop();
  EXPECT_TRUE(Eventually([&] {
    (void)client.Echo(10, 0, absl::Milliseconds(20));
    absl::SleepFor(2 * kKeepaliveTime);
    return client.channel().GetState(false) != rpc::ConnectivityState::kReady;
  }));
}

// An idle connection and one with a long call.
void ExpectToStayAlive(const Arguments& of_server, Arguments of_clients) {
  PeerProcess server = PeerProcess::Serve(of_server);
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address(), of_clients);
  ASSERT_OK(client.Echo(10));
  // Another option, another connection.
  of_clients["grpc.client_idle_timeout_ms"] = 1'000'000;
  const Client idle(server.address(), of_clients);
  ASSERT_OK(idle.Echo(10));
  rpc::Status status;
  std::thread caller([&] { status = client.Block(absl::InfiniteDuration()); });
  EXPECT_TRUE(Eventually([&] { return idle.Observe().blocked() == 1; }));
  const int64_t connections = idle.Observe().connections();
  for (int i = 0; i < 5; ++i) {
    absl::SleepFor(kKeepaliveTime * 4);
    EXPECT_EQ(idle.channel().GetState(false), rpc::ConnectivityState::kReady);
  }
  EXPECT_EQ(idle.Observe().connections(), connections);
  EXPECT_OK(client.ReleaseBlocked());
  caller.join();
  EXPECT_OK(status);
}

// Together less than the test takes: who did not answer would be cut off. Only
// one side asks, as what it asks is a sign of its own life.
const Arguments kAsking = {{"grpc.keepalive_time_ms", 200},
                           {"grpc.keepalive_timeout_ms", 2000},
                           {"grpc.keepalive_permit_without_calls", 1}};

TEST(KeepaliveTest, WhoAnswersTheServerStaysAlive) {
  ExpectToStayAlive(kAsking, {});
}

TEST(KeepaliveTest, WhoAnswersItsClientsStaysAlive) {
  ExpectToStayAlive({}, kAsking);
}

TEST(StoppedPeerTest, AStoppedServerThatIsKilledIsNoticed) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  ASSERT_OK(client.Echo(10));
  server.Stop();
  rpc::Status status;
  std::thread caller([&] { status = client.Echo(10); });
  absl::SleepFor(absl::Milliseconds(50));
  const absl::Time start = absl::Now();
  server.Kill();
  caller.join();
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
}

}  // namespace
}  // namespace e2e
