// Goal: the reason names what a newcomer can look up: GID, port, interface.
// Method: choices made up.
#include "tools/rdma_info/address_reason.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/made_up_machine.h"

namespace rdma_info {
namespace {

AddressChoice Choice(const std::string& host, rdma::AddressUse use) {
  AddressChoice choice;
  choice.address = AddressOf(host, 7471);
  choice.use = use;
  choice.device = "mlx5_0";
  return choice;
}

TEST(AddressReasonTest, ConnectingStartsAtAGid) {
  AddressChoice choice = Choice("10.0.0.2", rdma::AddressUse::kConnect);
  choice.source = AddressOf("10.0.0.1", 0);
  EXPECT_EQ(ReasonOf(choice, HealthyMachine()),
            "the route to 10.0.0.2 starts at 10.0.0.1, GID 1 of its port 1 "
            "(eth2, RoCE v2)");
}

TEST(AddressReasonTest, OrAtAnInterfaceOfIpoib) {
  Machine machine = HealthyMachine();
  machine.devices = {InfinibandDevice("mlx5_0", "ib0")};
  machine.netdevs = {EthernetDevice("ib0", "10.0.0.1")};
  AddressChoice choice = Choice("10.0.0.2", rdma::AddressUse::kConnect);
  choice.source = AddressOf("10.0.0.1", 0);
  EXPECT_EQ(ReasonOf(choice, machine),
            "the route to 10.0.0.2 starts at 10.0.0.1, an address of its "
            "interface ib0");
}

TEST(AddressReasonTest, OrWhereRdmaCmSays) {
  AddressChoice choice = Choice("10.0.0.2", rdma::AddressUse::kConnect);
  const std::string reason =
      "rdma_cm says that the route to 10.0.0.2 leaves by it";
  EXPECT_EQ(ReasonOf(choice, HealthyMachine()), reason);
  choice.source = AddressOf("192.0.2.1", 0);
  EXPECT_EQ(ReasonOf(choice, HealthyMachine()), reason);
}

TEST(AddressReasonTest, ListeningNamesTheGid) {
  EXPECT_EQ(
      ReasonOf(Choice("10.0.0.1", rdma::AddressUse::kListen), HealthyMachine()),
      "10.0.0.1 is GID 1 of its port 1 (eth2, RoCE v2)");
}

TEST(AddressReasonTest, ListeningEverywhereTakesTheFirstActiveDevice) {
  EXPECT_EQ(ReasonOf(Choice("::", rdma::AddressUse::kListen), HealthyMachine()),
            ":: is every address of this host, and this is the first device "
            "with an active port");
}

TEST(AddressReasonTest, NoDeviceIsWhatTheProviderSaid) {
  AddressChoice choice = Choice("10.0.0.2", rdma::AddressUse::kConnect);
  choice.device = absl::NotFoundError("no route to 10.0.0.2");
  EXPECT_EQ(ReasonOf(choice, HealthyMachine()), "no route to 10.0.0.2");
}

TEST(AddressReasonTest, TheSoftwareDeviceIsForThisHost) {
  AddressChoice choice = Choice("::1", rdma::AddressUse::kConnect);
  choice.device = "soft0";
  choice.is_software = true;
  EXPECT_EQ(ReasonOf(choice, HealthyMachine()),
            "::1 is an address of this host, whose processes the software "
            "device connects");
}

}  // namespace
}  // namespace rdma_info
