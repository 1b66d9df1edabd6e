// Goal: a device that is removed under a process costs its calls a status, and
// the process neither hangs nor crashes: it ends in order, and others use the
// next device as if nothing had been.
// Method: `rdma link delete` and `add` of soft-RoCE devices, on either side.
// All that uses a device does so in a child process; see network.h.
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/network.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

// The status of a call without a deadline under which a device is removed.
rpc::Status RemoveUnderACall(Client& client, Whose whose) {
  rpc::Status status;
  absl::Time end;
  std::thread caller([&] {
    status = client.Block(absl::InfiniteDuration());
    end = absl::Now();
  });
  EXPECT_TRUE(Eventually([&] { return client.Observe().blocked() == 1; }));
  const absl::Time start = absl::Now();
  StartRemovingDevice(whose);
  caller.join();
  EXPECT_LT(end - start, kPatience);
  return status;
}

// Whatever comes, all of this ends. A further call has no way to go.
[[noreturn]] void LoseDevice(Whose whose) {
  auto server = std::make_unique<Server>();
  EXPECT_TRUE(server->ok()) << server->status();
  auto client = std::make_unique<Client>(server->address(), QuickReconnect());
  EXPECT_OK(client->Echo(10));
  EXPECT_TRUE(
      HasCode(RemoveUnderACall(*client, whose), rpc::StatusCode::UNAVAILABLE));
  const absl::Time start = absl::Now();
  EXPECT_FALSE(client->Echo(10, 0, absl::Seconds(2)).ok());
  client = nullptr;
  server->server().Shutdown(absl::Now() + absl::Seconds(1));
  server = nullptr;
  EXPECT_LT(absl::Now() - start, kPatience);
  std::exit(testing::Test::HasFailure() ? EXIT_FAILURE : EXIT_SUCCESS);
}

// A device has its addresses a moment after it is made.
[[noreturn]] void CallOverNewDevices() {
  EXPECT_TRUE(Eventually(
      [] {
        const Server server;
        return server.ok() && Client(server.address())
                                  .Echo(100'000, 1 << 20, absl::Seconds(5))
                                  .ok();
      },
      absl::Seconds(60)));
  std::exit(testing::Test::HasFailure() ? EXIT_FAILURE : EXIT_SUCCESS);
}

class DeviceRemovalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Network::WhyNot(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    // A process of its own, and not a fork of this one.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(DeviceRemovalTest, TheClientsDevice) {
  EXPECT_EXIT(LoseDevice(Whose::kClients),
              testing::ExitedWithCode(EXIT_SUCCESS), "");
  MakeDeviceAgain(Whose::kClients);
  EXPECT_EXIT(CallOverNewDevices(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

// Which cannot be reached any more, and says so in its log.
TEST_F(DeviceRemovalTest, TheServersDevice) {
  EXPECT_EXIT(LoseDevice(Whose::kServers),
              testing::ExitedWithCode(EXIT_SUCCESS), "was removed");
  MakeDeviceAgain(Whose::kServers);
  EXPECT_EXIT(CallOverNewDevices(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

}  // namespace
}  // namespace e2e
