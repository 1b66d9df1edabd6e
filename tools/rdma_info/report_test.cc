// Goal: both reports say what there is, and the JSON report says it under the
// names that are promised. Method: machines made up.
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/byte_text.h"
#include "tools/rdma_info/diagnose.h"
#include "tools/rdma_info/json_report.h"
#include "tools/rdma_info/made_up_machine.h"
#include "tools/rdma_info/text_report.h"

namespace rdma_info {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// mlx5_0, asked for an address that it leads to.
Machine MachineWithAddress() {
  Machine machine = HealthyMachine();
  AddressChoice choice;
  choice.address = AddressOf("10.0.0.2", 7471);
  choice.device = "mlx5_0";
  choice.source = AddressOf("10.0.0.1", 0);
  machine.address = AddressReport{.text = "storage:7471", .choices = {choice}};
  return machine;
}

Machine BrokenMachine() {
  Machine machine = HealthyMachine();
  machine.system.memlock_bytes = 64 << 10;
  machine.devices[0].opened = absl::InternalError("ibv_open_device: no");
  return machine;
}

std::string Text(const Machine& machine) {
  return TextReport(machine, Diagnose(machine, {}));
}

nlohmann::json Json(const Machine& machine) {
  return nlohmann::json::parse(JsonReport(machine, Diagnose(machine, {})));
}

std::vector<std::string> Keys(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// --- Text --------------------------------------------------------------------

TEST(TextReportTest, ShowsDevicePortGidsAndCapabilities) {
  const std::string text = Text(HealthyMachine());
  EXPECT_THAT(text, StartsWith("mlx5_0: NVIDIA (Mellanox), driver mlx5_core, "
                               "firmware 22.36.1010, InfiniBand or RoCE "
                               "adapter\n"));
  EXPECT_THAT(text,
              HasSubstr("  port 1: ACTIVE (LinkUp), Ethernet, 100 Gb/sec (4X "
                        "EDR), MTU 4096 of 4096, eth2\n"));
  EXPECT_THAT(text, HasSubstr("    GID 1   ::ffff:10.0.0.1, RoCE v2, eth2, "
                              "address 10.0.0.1\n"));
  EXPECT_THAT(text,
              HasSubstr("  max_qp_wr                 32768        256  "));
}

TEST(TextReportTest, SaysWhyAnAddressGoesWhere) {
  EXPECT_THAT(Text(MachineWithAddress()),
              HasSubstr("Address storage:7471\n"
                        "  to connect to 10.0.0.2:7471\n"
                        "    hardware  mlx5_0    the route to 10.0.0.2 starts "
                        "at 10.0.0.1, GID 1 of"));
}

TEST(TextReportTest, CommandsAreNotWrapped) {
  EXPECT_THAT(
      Text(BrokenMachine()),
      HasSubstr(
          "  do:  echo '* - memlock unlimited' | sudo tee "
          "/etc/security/limits.d/rdma.conf  # from the next login on\n"));
}

TEST(TextReportTest, EndsWithTheVerdict) {
  EXPECT_THAT(Text(HealthyMachine()), HasSubstr("RDMA hardware is ready: "));
  EXPECT_THAT(Text(BrokenMachine()), HasSubstr("cannot be used until"));
  Machine machine = HealthyMachine();
  machine.devices = {SoftwareDevice()};
  EXPECT_THAT(Text(machine), HasSubstr("No RDMA hardware. The software device "
                                       "soft0 is ready"));
}

TEST(TextReportTest, EqualCapabilitiesAreShownOnce) {
  Machine machine = HealthyMachine();
  machine.devices.push_back(RoceDevice("mlx5_1", "eth3", "10.0.1.1"));
  machine.devices[2].attributes.max_qp = 7;
  EXPECT_THAT(Text(machine), HasSubstr("  capabilities as of mlx5_0\n"));
  const std::string text = Text(machine);
  EXPECT_THAT(text.substr(text.find("mlx5_1: ")),
              HasSubstr("  max_qp                        7          -"));
}

// --- JSON --------------------------------------------------------------------

// The names that scripts may rely on; json_report.h promises them.
TEST(JsonReportTest, NamesStay) {
  const nlohmann::json report = Json(MachineWithAddress());
  EXPECT_THAT(Keys(report),
              ElementsAre("address", "devices", "exit_status", "findings",
                          "hardware", "netdevs", "system", "usable_devices"));
  EXPECT_THAT(Keys(report["system"]),
              ElementsAre("cgroup_limits", "fork", "huge_pages", "ib_uverbs",
                          "ignores_memlock", "kernel", "memlock_bytes",
                          "memlock_hard_bytes", "memory_bytes",
                          "rdma_cm_access", "rdma_ucm"));
  const nlohmann::json& device = report["devices"][0];
  EXPECT_THAT(
      Keys(device),
      ElementsAre("access", "capabilities", "driver", "error", "firmware",
                  "name", "node", "node_type", "opened", "ports", "provider",
                  "vendor", "vendor_id", "vendor_part_id"));
  const nlohmann::json& port = device["ports"][0];
  EXPECT_THAT(Keys(port),
              ElementsAre("active_mtu_bytes", "gids", "link_layer",
                          "max_mtu_bytes", "netdevs", "number",
                          "physical_state", "rate", "sm_lid", "state"));
  EXPECT_THAT(Keys(port["gids"][0]),
              ElementsAre("gid", "index", "ip_address", "netdev", "type"));
  EXPECT_THAT(
      Keys(device["capabilities"]),
      ElementsAre("atomics", "max_cq", "max_cqe", "max_inline_data", "max_mr",
                  "max_mr_size", "max_mw", "max_qp", "max_qp_init_rd_atom",
                  "max_qp_rd_atom", "max_qp_wr", "max_sge", "max_srq",
                  "max_srq_wr", "mem_window_type_2", "mem_window_type_2b",
                  "on_demand_paging"));
  EXPECT_THAT(Keys(report["netdevs"][0]),
              ElementsAre("addresses", "carrier", "mtu_bytes", "name", "up"));
  EXPECT_THAT(Keys(report["address"]), ElementsAre("choices", "error", "text"));
  EXPECT_THAT(Keys(report["address"]["choices"][0]),
              ElementsAre("address", "device", "provider", "reason", "use"));
  EXPECT_THAT(Keys(Json(BrokenMachine())["findings"][0]),
              ElementsAre("fix", "id", "severity", "subject", "what", "why"));
}

TEST(JsonReportTest, TellsTheVerdict) {
  EXPECT_EQ(Json(HealthyMachine())["hardware"], "ready");
  EXPECT_EQ(Json(HealthyMachine())["exit_status"], 0);
  EXPECT_EQ(Json(HealthyMachine())["usable_devices"][0], "mlx5_0");
  EXPECT_EQ(Json(BrokenMachine())["hardware"], "unusable");
  EXPECT_EQ(Json(BrokenMachine())["exit_status"], 1);
  EXPECT_EQ(Json(BrokenMachine())["findings"][0]["id"], "memlock_too_low");
}

TEST(JsonReportTest, WhatIsNotThereIsNull) {
  const nlohmann::json report = Json(HealthyMachine());
  EXPECT_TRUE(report["address"].is_null());
  EXPECT_TRUE(report["system"]["memlock_bytes"].is_null());
  EXPECT_TRUE(report["devices"][0]["error"].is_null());
  EXPECT_TRUE(
      report["devices"][0]["ports"][0]["gids"][0]["ip_address"].is_null());
  EXPECT_TRUE(
      report["devices"][0]["capabilities"]["max_qp"]["transport"].is_null());
}

TEST(JsonReportTest, CapabilitiesAreClampedToTheDevice) {
  Machine machine = HealthyMachine();
  machine.devices[0].attributes.max_qp_wr = 100;
  machine.devices[0].attributes.max_qp_init_rd_atom = 4;
  const nlohmann::json all = Json(machine)["devices"][0]["capabilities"];
  EXPECT_EQ(all["max_qp_wr"]["transport"], 100);
  EXPECT_EQ(all["max_qp_init_rd_atom"]["transport"], 4);
  EXPECT_EQ(all["max_inline_data"]["device"], 956);
  EXPECT_EQ(all["max_inline_data"]["transport"], 512);
  EXPECT_EQ(all["mem_window_type_2"]["transport"], true);
}

TEST(JsonReportTest, ADeviceThatWasNotOpenedHasNoCapabilities) {
  const nlohmann::json device = Json(BrokenMachine())["devices"][0];
  EXPECT_EQ(device["opened"], false);
  EXPECT_EQ(device["error"], "ibv_open_device: no");
  EXPECT_TRUE(device["capabilities"].empty());
}

TEST(JsonReportTest, BytesThatAreNoTextDoNotBreakIt) {
  Machine machine = HealthyMachine();
  machine.address =
      AddressReport{.text = "\xff:1", .resolved = absl::UnavailableError("")};
  EXPECT_EQ(Json(machine)["address"]["text"], "\xef\xbf\xbd:1");
}

// --- Numbers -----------------------------------------------------------------

TEST(ByteTextTest, TakesTheLargestUnit) {
  EXPECT_EQ(ByteText(0), "0 bytes");
  EXPECT_EQ(ByteText(1023), "1023 bytes");
  EXPECT_EQ(ByteText(64 << 10), "64 KiB");
  EXPECT_EQ(ByteText((8 << 20) - 1), "7.9 MiB");
  EXPECT_EQ(ByteText(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(ByteText(uint64_t{5} << 50), "5120 TiB");
}

}  // namespace
}  // namespace rdma_info
