// Goal: what is wrong with a port is found, with the command for its kind of
// fabric. Method: ports made up, one thing wrong at a time.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/checks.h"
#include "tools/rdma_info/made_up_machine.h"

namespace rdma_info {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Finding Only(const Machine& machine) {
  const Device& device = machine.devices[0];
  const auto findings = CheckPort(device, device.ports[0], machine);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding() : findings[0];
}

bool IsFine(const Machine& machine) {
  const Device& device = machine.devices[0];
  return CheckPort(device, device.ports[0], machine).empty();
}

Port& PortOf(Machine& machine) { return machine.devices[0].ports[0]; }

Machine InfinibandMachine() {
  Machine machine = HealthyMachine();
  machine.devices[0] = InfinibandDevice("mlx5_0", "ib0");
  machine.netdevs = {EthernetDevice("ib0", "10.0.0.1")};
  return machine;
}

// Port and interface as they are when the link is not up.
Machine DownMachine() {
  Machine machine = HealthyMachine();
  PortOf(machine).state = IBV_PORT_DOWN;
  PortOf(machine).physical_state = "Disabled";
  return machine;
}

TEST(CheckPortTest, AHealthyPortHasNothingToSay) {
  EXPECT_TRUE(IsFine(HealthyMachine()));
  EXPECT_TRUE(IsFine(InfinibandMachine()));
}

// --- The link ----------------------------------------------------------------

TEST(CheckLinkTest, TheInterfaceMayBeSwitchedOff) {
  Machine machine = DownMachine();
  machine.netdevs[0].is_up = false;
  const Finding finding = Only(machine);
  EXPECT_EQ(finding.id, "port_down");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_EQ(finding.subject, "mlx5_0/1");
  EXPECT_THAT(finding.fix, Contains("sudo ip link set dev eth2 up"));
}

TEST(CheckLinkTest, TheCableMayBeOut) {
  Machine machine = DownMachine();
  machine.netdevs[0].has_carrier = false;
  EXPECT_EQ(Only(machine).id, "port_down");
  EXPECT_THAT(Only(machine).what, HasSubstr("eth2 has no link"));
}

TEST(CheckLinkTest, ElseTheDriverKnows) {
  EXPECT_EQ(Only(DownMachine()).id, "port_down");
  EXPECT_THAT(Only(DownMachine()).fix, Contains("rdma link show mlx5_0/1"));
}

TEST(CheckLinkTest, InfinibandNeedsASubnetManager) {
  for (const ibv_port_state state : {IBV_PORT_INIT, IBV_PORT_ARMED}) {
    Machine machine = InfinibandMachine();
    PortOf(machine).state = state;
    EXPECT_EQ(Only(machine).id, "no_subnet_manager");
    EXPECT_EQ(Only(machine).severity, Severity::kError);
    EXPECT_THAT(Only(machine).fix, Contains(HasSubstr("opensm")));
  }
}

TEST(CheckLinkTest, ACableOfInfinibandIsNoMatterOfIpLink) {
  Machine machine = InfinibandMachine();
  PortOf(machine).state = IBV_PORT_DOWN;
  machine.netdevs[0].is_up = false;
  EXPECT_EQ(Only(machine).id, "port_down");
  EXPECT_THAT(Only(machine).fix,
              Contains(HasSubstr("rdma link show mlx5_0/1")));
}

// --- Addresses ---------------------------------------------------------------

TEST(CheckAddressOfPortTest, ALinkLocalGidIsNoAddress) {
  Machine machine = HealthyMachine();
  PortOf(machine).gids.pop_back();
  machine.netdevs[0].addresses.clear();
  const Finding finding = Only(machine);
  EXPECT_EQ(finding.id, "no_ip_address");
  EXPECT_EQ(finding.severity, Severity::kError);
  EXPECT_THAT(finding.fix,
              Contains(HasSubstr("sudo ip addr add ADDRESS/24 dev eth2")));
}

TEST(CheckAddressOfPortTest, AnAddressWithoutItsGidIsAnotherMatter) {
  Machine machine = HealthyMachine();
  PortOf(machine).gids.pop_back();
  EXPECT_EQ(Only(machine).id, "no_ip_address");
  EXPECT_THAT(Only(machine).what, HasSubstr("has the address 10.0.0.1, but"));
  EXPECT_THAT(Only(machine).fix, Contains(HasSubstr("eth2 down && ")));
}

TEST(CheckAddressOfPortTest, TheInterfaceMayBeInAnotherNamespace) {
  Machine machine = HealthyMachine();
  PortOf(machine).gids.pop_back();
  machine.netdevs.clear();
  EXPECT_EQ(Only(machine).id, "no_ip_address");
  EXPECT_THAT(Only(machine).what, HasSubstr("network namespace"));
}

TEST(CheckAddressOfPortTest, InfinibandTakesIpoibs) {
  Machine machine = InfinibandMachine();
  machine.netdevs[0].addresses.clear();
  EXPECT_EQ(Only(machine).id, "no_ip_address");
  PortOf(machine).netdevs.clear();
  EXPECT_EQ(Only(machine).id, "no_ip_address");
  EXPECT_THAT(Only(machine).fix, Contains("sudo modprobe ib_ipoib"));
}

TEST(CheckAddressOfPortTest, IwarpTakesTheInterfaces) {
  Machine machine = HealthyMachine();
  machine.devices[0].node_type = "RNIC";
  PortOf(machine).gids.clear();
  EXPECT_TRUE(IsFine(machine));
  machine.netdevs[0].addresses.clear();
  EXPECT_EQ(Only(machine).id, "no_ip_address");
}

TEST(CheckAddressOfPortTest, Ipv6AloneIsWorthANote) {
  Machine machine = HealthyMachine();
  PortOf(machine).gids[1] = RoceGid(1, "2001:db8::1", "eth2");
  EXPECT_EQ(Only(machine).id, "no_ipv4_gid");
  EXPECT_EQ(Only(machine).severity, Severity::kNote);
}

TEST(CheckAddressOfPortTest, RoceV1AloneIsAWarning) {
  Machine machine = HealthyMachine();
  for (Gid& gid : PortOf(machine).gids) gid.type = GidType::kRoceV1;
  EXPECT_EQ(Only(machine).id, "no_roce_v2_gid");
  EXPECT_EQ(Only(machine).severity, Severity::kWarning);
}

TEST(CheckAddressOfPortTest, BothVersionsAreFine) {
  Machine machine = HealthyMachine();
  Gid v1 = PortOf(machine).gids[1];
  v1.type = GidType::kRoceV1;
  PortOf(machine).gids.push_back(v1);
  EXPECT_TRUE(IsFine(machine));
}

// --- MTU ---------------------------------------------------------------------

Machine WithMtu(int netdev_bytes, int roce_bytes) {
  Machine machine = HealthyMachine();
  machine.netdevs[0].mtu_bytes = netdev_bytes;
  PortOf(machine).active_mtu_bytes = roce_bytes;
  return machine;
}

TEST(CheckMtuTest, TheUsualOneOfEthernetIsANote) {
  const Finding finding = Only(WithMtu(1500, 1024));
  EXPECT_EQ(finding.id, "mtu_small");
  EXPECT_EQ(finding.severity, Severity::kNote);
  EXPECT_THAT(finding.fix,
              Contains(HasSubstr("sudo ip link set dev eth2 mtu 4192")));
}

TEST(CheckMtuTest, ASmallerOneIsAWarning) {
  EXPECT_EQ(Only(WithMtu(576, 256)).severity, Severity::kWarning);
}

TEST(CheckMtuTest, WhatTheInterfaceDoesNotCauseIsNotItsFault) {
  EXPECT_TRUE(IsFine(WithMtu(4192, 2048)));
  EXPECT_TRUE(IsFine(WithMtu(1500, 0)));  // the device was not asked
}

TEST(CheckMtuTest, InfinibandsIsNotTheInterfaces) {
  Machine machine = InfinibandMachine();
  machine.netdevs[0].mtu_bytes = 2044;
  PortOf(machine).active_mtu_bytes = 2048;
  EXPECT_TRUE(IsFine(machine));
}

}  // namespace
}  // namespace rdma_info
