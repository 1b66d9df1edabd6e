// Goal: a server that shuts down under load lets running calls finish, or cuts
// them off at its deadline; every call gets a status, and a call that the
// server answered is not lost.
// Method: a server in the test's process, so that the test sees what its
// handlers did; blocked handlers, and threads that call without pause.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

const int kRounds = TheDeviceUnderTest().Rounds(5);

TEST(ShutdownTest, RunningCallsFinish) {
  Server server;
  const Client client(server.address());
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] { EXPECT_OK(client.Block(absl::Seconds(30))); });
  }
  EXPECT_TRUE(Eventually([&] { return client.Observe().blocked() == 4; }));
  std::thread stopper([&] { server.server().Shutdown(); });
  // New calls are refused while it drains.
  EXPECT_TRUE(Eventually([&] {
    const rpc::Status status = client.Echo(10);
    EXPECT_TRUE(status.ok() ||
                status.error_code() == rpc::StatusCode::UNAVAILABLE)
        << status;
    return !status.ok();
  }));
  Nothing response;
  server.service().ReleaseBlocked(nullptr, nullptr, &response).IgnoreError();
  for (std::thread& caller : callers) caller.join();
  stopper.join();
}

TEST(ShutdownTest, TheDeadlineCutsRunningCallsOff) {
  Server server;
  const Client client(server.address());
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      const rpc::Status status = client.Block(absl::Seconds(30));
      EXPECT_TRUE(status.error_code() == rpc::StatusCode::CANCELLED ||
                  status.error_code() == rpc::StatusCode::UNAVAILABLE)
          << status;
    });
  }
  EXPECT_TRUE(Eventually([&] { return client.Observe().blocked() == 4; }));
  const absl::Time start = absl::Now();
  server.server().Shutdown(absl::Now() + absl::Milliseconds(200));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(190));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  for (std::thread& caller : callers) caller.join();
}

// Threads that call until a call fails; a server that goes away meanwhile.
void ShutDownUnderLoad(absl::Duration drain) {
  auto server = std::make_unique<Server>();
  const Client client(server->address());
  ASSERT_OK(client.Echo(10));
  std::atomic<int> succeeded = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i) {
    callers.emplace_back([&, i] {
      while (true) {
        const rpc::Status status =
            i % 3 == 0 ? client.Echo(10, 2'000'000) : client.Echo(100);
        if (!status.ok()) {
          EXPECT_TRUE(status.error_code() == rpc::StatusCode::UNAVAILABLE ||
                      status.error_code() == rpc::StatusCode::CANCELLED)
              << status;
          return;
        }
        ++succeeded;
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return succeeded > 50; }));
  const absl::Time start = absl::Now();
  server->server().Shutdown(start + drain);
  EXPECT_LT(absl::Now() - start, drain + absl::Seconds(3));
  for (std::thread& caller : callers) caller.join();
  server = nullptr;
}

TEST(ShutdownTest, DrainsUnderLoad) {
  for (int i = 0; i < kRounds; ++i) ShutDownUnderLoad(absl::Seconds(10));
}

TEST(ShutdownTest, StopsAtOnceUnderLoad) {
  for (int i = 0; i < kRounds; ++i) ShutDownUnderLoad(absl::ZeroDuration());
}

TEST(ShutdownTest, ACallThatTheServerAnsweredIsNotLost) {
  // As many handlers as calls return while the server drains: each call of
  // them has to end well.
  for (int i = 0; i < 2 * kRounds; ++i) {
    Server server;
    const Client client(server.address());
    std::vector<std::thread> callers;
    for (int j = 0; j < 8; ++j) {
      callers.emplace_back([&] { EXPECT_OK(client.Block(absl::Seconds(30))); });
    }
    EXPECT_TRUE(Eventually([&] { return client.Observe().blocked() == 8; }));
    std::thread releaser([&] {
      Nothing response;
      server.service()
          .ReleaseBlocked(nullptr, nullptr, &response)
          .IgnoreError();
    });
    server.server().Shutdown(absl::Now() + absl::Seconds(20));
    releaser.join();
    for (std::thread& caller : callers) caller.join();
  }
}

TEST(ShutdownTest, ManyServersComeAndGoAndLeaveNothing) {
  const auto once = [] {
    const Server server;
    const Client client(server.address(), QuickReconnect());
    EXPECT_OK(client.Echo(1000, 200'000));
  };
  once();
  Resources before = Resources::Now();
  ASSERT_TRUE(Eventually([&] {
    const Resources now = Resources::Now();
    return std::exchange(before, now) == now;
  }));
  for (int i = 0; i < 4 * kRounds; ++i) once();
  EXPECT_TRUE(Eventually([&] { return Resources::Now() == before; }))
      << Resources::Now() << "\nbefore: " << before;
}

}  // namespace
}  // namespace e2e
