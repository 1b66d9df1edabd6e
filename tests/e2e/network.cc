#include "tests/e2e/network.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr char kClientNetdev[] = "VERBENA_TEST_NETDEV";
constexpr char kServerNetdev[] = "VERBENA_TEST_SERVER_NETDEV";

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void Run(const std::string& command) {
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

std::string DeviceOf(Whose whose) {
  const DeviceUnderTest& device = TheDeviceUnderTest();
  return whose == Whose::kClients ? device.client_device : device.server_device;
}

std::string NetdevOf(Whose whose) {
  return Environment(whose == Whose::kClients ? kClientNetdev : kServerNetdev);
}

void SetNetem(const std::string& netdev, const std::string& netem) {
  if (netem.empty()) {
    Run(absl::StrCat("tc qdisc delete dev ", netdev, " root"));
  } else {
    Run(absl::StrCat("tc qdisc replace dev ", netdev,
                     " root netem limit 1000000 ", netem));
  }
}

}  // namespace

std::string Network::WhyNot() {
  if (TheDeviceUnderTest().software) {
    return "the software device has no network that could fail";
  }
  if (Environment(kClientNetdev).empty() ||
      Environment(kServerNetdev).empty()) {
    return absl::StrCat(kClientNetdev, " and ", kServerNetdev,
                        " do not say which network interfaces may be harmed");
  }
  return ::geteuid() == 0 ? "" : "only root may harm the network";
}

Network::Network()
    : client_netdev_(NetdevOf(Whose::kClients)),
      server_netdev_(NetdevOf(Whose::kServers)) {
  Impair("delay 0ms");
}

Network::~Network() {
  SetLink(true);
  Impair("");
}

void Network::SetLink(bool up) {
  Run(absl::StrCat("ip link set ", client_netdev_, up ? " up" : " down"));
}

void Network::Impair(const std::string& netem) {
  SetNetem(client_netdev_, netem);
  SetNetem(server_netdev_, netem);
}

void StartRemovingDevice(Whose whose) {
  Run(absl::StrCat("rdma link delete ", DeviceOf(whose), " &"));
}

void MakeDeviceAgain(Whose whose) {
  const std::string command =
      absl::StrCat("rdma link add ", DeviceOf(whose), " type rxe netdev ",
                   NetdevOf(whose), " 2>/dev/null");
  EXPECT_TRUE(
      Eventually([&command] { return std::system(command.c_str()) == 0; },
                 absl::Seconds(60)))
      << command;
}

}  // namespace e2e
