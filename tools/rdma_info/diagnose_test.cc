// Goal: the verdict on a whole machine: whether RDMA hardware can be used, what
// is an error of it, and what an address adds. Method: machines made up.
#include "tools/rdma_info/diagnose.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/made_up_machine.h"

namespace rdma_info {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr DiagnoseOptions kRequireHardware = {.require_hardware = true};

std::vector<std::string> Ids(const Diagnosis& diagnosis) {
  std::vector<std::string> ids;
  for (const Finding& finding : diagnosis.findings) {
    ids.emplace_back(finding.id);
  }
  return ids;
}

void TakeDown(Device& device) { device.ports[0].state = IBV_PORT_DOWN; }

TEST(DiagnoseTest, AHealthyMachineIsReady) {
  const Diagnosis diagnosis = Diagnose(HealthyMachine(), kRequireHardware);
  EXPECT_EQ(diagnosis.hardware, Hardware::kReady);
  EXPECT_THAT(diagnosis.usable_devices, ElementsAre("mlx5_0"));
  EXPECT_THAT(diagnosis.findings, IsEmpty());
  EXPECT_FALSE(diagnosis.HasErrors());
}

// --- Without hardware --------------------------------------------------------

Machine SoftwareOnly() {
  Machine machine = HealthyMachine();
  machine.devices = {SoftwareDevice()};
  return machine;
}

TEST(DiagnoseTest, TheSoftwareDeviceAloneIsAFineMachine) {
  Machine machine = SoftwareOnly();
  machine.system = System();  // no modules, and nothing that needs them
  const Diagnosis diagnosis = Diagnose(machine, {});
  EXPECT_EQ(diagnosis.hardware, Hardware::kNone);
  EXPECT_THAT(Ids(diagnosis), ElementsAre("no_device"));
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kNote);
  EXPECT_FALSE(diagnosis.HasErrors());
}

TEST(DiagnoseTest, UnlessHardwareIsRequired) {
  const Diagnosis diagnosis = Diagnose(SoftwareOnly(), kRequireHardware);
  EXPECT_EQ(diagnosis.hardware, Hardware::kNone);
  EXPECT_THAT(Ids(diagnosis), ElementsAre("no_device"));
  EXPECT_TRUE(diagnosis.HasErrors());
}

// --- Several devices ---------------------------------------------------------

Machine TwoDevices() {
  Machine machine = HealthyMachine();
  machine.devices.push_back(RoceDevice("mlx5_1", "eth3", "10.0.1.1"));
  machine.netdevs.push_back(EthernetDevice("eth3", "10.0.1.1"));
  return machine;
}

TEST(DiagnoseTest, WhileOneDeviceIsUsableAnothersFaultIsAWarning) {
  Machine machine = TwoDevices();
  TakeDown(machine.devices[0]);
  const Diagnosis diagnosis = Diagnose(machine, {});
  EXPECT_EQ(diagnosis.hardware, Hardware::kReady);
  EXPECT_THAT(diagnosis.usable_devices, ElementsAre("mlx5_1"));
  EXPECT_THAT(Ids(diagnosis), ElementsAre("port_down"));
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kWarning);
  EXPECT_FALSE(diagnosis.HasErrors());
}

TEST(DiagnoseTest, WithNoneUsableItIsAnError) {
  Machine machine = TwoDevices();
  TakeDown(machine.devices[0]);
  machine.devices[2].opened = absl::InternalError("broken");
  const Diagnosis diagnosis = Diagnose(machine, {});
  EXPECT_EQ(diagnosis.hardware, Hardware::kUnusable);
  EXPECT_THAT(diagnosis.usable_devices, IsEmpty());
  EXPECT_THAT(Ids(diagnosis), ElementsAre("port_down", "device_open_failed"));
  EXPECT_TRUE(diagnosis.HasErrors());
}

TEST(DiagnoseTest, ADeviceThatLacksWhatTheTransportNeedsIsNotUsable) {
  Machine machine = TwoDevices();
  machine.devices[0].attributes.max_srq = 0;
  EXPECT_THAT(Diagnose(machine, {}).usable_devices, ElementsAre("mlx5_1"));
}

TEST(DiagnoseTest, OnePortOfADeviceIsEnough) {
  Machine machine = HealthyMachine();
  std::vector<Port>& ports = machine.devices[0].ports;
  ports.insert(ports.begin(), ports[0]);
  ports[1].number = 2;
  TakeDown(machine.devices[0]);
  const Diagnosis diagnosis = Diagnose(machine, {});
  EXPECT_EQ(diagnosis.hardware, Hardware::kReady);
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kWarning);
}

TEST(DiagnoseTest, WhatConcernsAllDevicesIsAnErrorThoughTheyAreFine) {
  Machine machine = HealthyMachine();
  machine.system.memlock_bytes = 64 << 10;
  const Diagnosis diagnosis = Diagnose(machine, {});
  EXPECT_EQ(diagnosis.hardware, Hardware::kUnusable);
  EXPECT_THAT(diagnosis.usable_devices, IsEmpty());
  EXPECT_THAT(Ids(diagnosis), ElementsAre("memlock_too_low"));
}

TEST(DiagnoseTest, SoftRoceIsNotedOnceForAllItsDevices) {
  Machine machine = TwoDevices();
  machine.devices[0].driver = machine.devices[2].driver = "rdma_rxe";
  const Diagnosis diagnosis = Diagnose(machine, {});
  EXPECT_THAT(Ids(diagnosis), ElementsAre("soft_roce"));
  EXPECT_EQ(diagnosis.findings[0].subject, "mlx5_0, mlx5_1");
}

TEST(DiagnoseTest, ErrorsComeFirst) {
  Machine machine = HealthyMachine();
  machine.system.memlock_bytes = uint64_t{1} << 30;  // warning
  machine.devices[0].driver = "rdma_rxe";            // note
  TakeDown(machine.devices[0]);                      // error
  EXPECT_THAT(Ids(Diagnose(machine, {})),
              ElementsAre("port_down", "memlock_limited", "soft_roce"));
}

// --- An address --------------------------------------------------------------

AddressChoice Choice(bool is_software, rdma::AddressUse use,
                     const absl::StatusOr<std::string>& device) {
  AddressChoice choice;
  choice.address = AddressOf("10.0.0.2", 7471);
  choice.use = use;
  choice.is_software = is_software;
  choice.device = device;
  return choice;
}

// What the providers answer for connecting; to listening they say no.
Machine WithAddress(const absl::StatusOr<std::string>& hardware,
                    const absl::StatusOr<std::string>& software) {
  const absl::Status no = absl::NotFoundError("is no address of this host");
  Machine machine = HealthyMachine();
  machine.address = AddressReport{
      .text = "10.0.0.2:7471",
      .choices = {Choice(false, rdma::AddressUse::kConnect, hardware),
                  Choice(true, rdma::AddressUse::kConnect, software),
                  Choice(false, rdma::AddressUse::kListen, no),
                  Choice(true, rdma::AddressUse::kListen, no)}};
  return machine;
}

const absl::Status kNoWay = absl::NotFoundError("no route");

TEST(DiagnoseAddressTest, HardwareThatLeadsThereIsFine) {
  EXPECT_THAT(
      Diagnose(WithAddress("mlx5_0", kNoWay), kRequireHardware).findings,
      IsEmpty());
}

TEST(DiagnoseAddressTest, HardwareThatOnlyListensIsFine) {
  Machine machine = WithAddress(kNoWay, kNoWay);
  machine.address->choices[2].device = "mlx5_0";
  EXPECT_THAT(Diagnose(machine, kRequireHardware).findings, IsEmpty());
}

TEST(DiagnoseAddressTest, TheSoftwareDeviceIsANote) {
  const Diagnosis diagnosis = Diagnose(WithAddress(kNoWay, "soft0"), {});
  EXPECT_THAT(Ids(diagnosis), ElementsAre("address_software_only"));
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kNote);
  EXPECT_EQ(diagnosis.findings[0].why, "no route");
}

TEST(DiagnoseAddressTest, AndAnErrorWhereHardwareIsRequired) {
  const Diagnosis diagnosis =
      Diagnose(WithAddress(kNoWay, "soft0"), kRequireHardware);
  EXPECT_THAT(Ids(diagnosis), ElementsAre("address_unreachable"));
  EXPECT_TRUE(diagnosis.HasErrors());
  // The machine itself is as fine as before.
  EXPECT_EQ(diagnosis.hardware, Hardware::kReady);
}

TEST(DiagnoseAddressTest, NoDeviceAtAllIsAnError) {
  const Diagnosis diagnosis = Diagnose(WithAddress(kNoWay, kNoWay), {});
  EXPECT_THAT(Ids(diagnosis), ElementsAre("address_unreachable"));
  EXPECT_EQ(diagnosis.findings[0].severity, Severity::kError);
  EXPECT_THAT(diagnosis.findings[0].fix[0],
              HasSubstr("ip route get 10.0.0.2 "));
}

TEST(DiagnoseAddressTest, ANameWithoutAddressIsAnError) {
  Machine machine = HealthyMachine();
  machine.address = AddressReport{
      .text = "nowhere:1", .resolved = absl::UnavailableError("unknown name")};
  const Diagnosis diagnosis = Diagnose(machine, {});
  EXPECT_THAT(Ids(diagnosis), ElementsAre("address_unknown"));
  EXPECT_TRUE(diagnosis.HasErrors());
}

}  // namespace
}  // namespace rdma_info
