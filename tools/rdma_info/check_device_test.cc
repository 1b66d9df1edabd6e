// Goal: the reason why a device cannot be opened, or not be used well, is
// found. Method: devices made up, one thing wrong at a time.
#include "absl/status/status.h"
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
  const auto findings = CheckDevice(machine.devices[0], machine);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding() : findings[0];
}

// mlx5_0, which could not be opened.
Machine Unopened() {
  Machine machine = HealthyMachine();
  machine.devices[0].opened = absl::InternalError("ibv_open_device: no");
  return machine;
}

TEST(CheckDeviceTest, AHealthyDeviceHasNothingToSay) {
  const Machine machine = HealthyMachine();
  EXPECT_THAT(CheckDevice(machine.devices[0], machine), IsEmpty());
}

TEST(CheckDeviceTest, ItsFileMayBeMissing) {
  Machine machine = Unopened();
  machine.devices[0].access = Access::kMissing;
  machine.devices[0].is_listed = false;
  EXPECT_EQ(Only(machine).id, "device_node_missing");
  EXPECT_EQ(Only(machine).severity, Severity::kError);
  EXPECT_EQ(Only(machine).subject, "mlx5_0");
  EXPECT_THAT(Only(machine).fix, Contains(HasSubstr("docker run --device=")));
}

TEST(CheckDeviceTest, ItsFileMayBeForOthers) {
  Machine machine = Unopened();
  machine.devices[0].access = Access::kDenied;
  EXPECT_EQ(Only(machine).id, "device_access_denied");
  EXPECT_THAT(Only(machine).fix,
              Contains(HasSubstr("chmod 0666 /dev/infiniband/uverbs0")));
}

TEST(CheckDeviceTest, ItsDriverMayLackTheHalfOfPrograms) {
  Machine machine = Unopened();
  machine.devices[0].is_listed = false;
  EXPECT_EQ(Only(machine).id, "user_driver_missing");
  EXPECT_THAT(Only(machine).fix, Contains(HasSubstr("ibverbs-providers")));
}

TEST(CheckDeviceTest, AnythingElseIsSaidAsItCame) {
  EXPECT_EQ(Only(Unopened()).id, "device_open_failed");
  EXPECT_THAT(Only(Unopened()).why, HasSubstr("ibv_open_device: no"));
}

TEST(CheckDeviceTest, WithoutIbUverbsTheDeviceIsNotToBlame) {
  Machine machine = Unopened();
  machine.system.has_uverbs = false;
  EXPECT_THAT(CheckDevice(machine.devices[0], machine), IsEmpty());
}

TEST(CheckDeviceTest, TheTransportNeedsSharedReceiveQueues) {
  Machine machine = HealthyMachine();
  machine.devices[0].attributes.max_srq = 0;
  EXPECT_EQ(Only(machine).id, "no_shared_receive_queue");
  EXPECT_EQ(Only(machine).severity, Severity::kError);
}

TEST(CheckDeviceTest, AndRdmaRead) {
  Machine machine = HealthyMachine();
  machine.devices[0].attributes.max_qp_rd_atom = 0;
  EXPECT_EQ(Only(machine).id, "no_rdma_read");
  EXPECT_EQ(Only(machine).severity, Severity::kError);
}

TEST(CheckDeviceTest, WithoutWindowsPeersSeeMoreThanTheyNeed) {
  Machine machine = HealthyMachine();
  machine.devices[0].attributes.device_cap_flags = IBV_DEVICE_MEM_WINDOW;
  EXPECT_EQ(Only(machine).id, "no_memory_windows");
  EXPECT_EQ(Only(machine).severity, Severity::kWarning);
}

TEST(CheckDeviceTest, ADeviceHasPorts) {
  Machine machine = HealthyMachine();
  machine.devices[0].ports.clear();
  EXPECT_EQ(Only(machine).id, "no_port");
}

TEST(CheckDeviceTest, ACgroupMayLimitIt) {
  Machine machine = HealthyMachine();
  machine.system.cgroup_limits = {{.device = "mlx5_0", .objects = 2000}};
  EXPECT_EQ(Only(machine).id, "cgroup_limited");
  EXPECT_EQ(Only(machine).severity, Severity::kWarning);
  EXPECT_THAT(Only(machine).what, HasSubstr("hca_handle=max hca_object=2000"));
}

TEST(CheckDeviceTest, ACgroupMayForbidIt) {
  Machine machine = HealthyMachine();
  machine.system.cgroup_limits = {
      {.device = "mlx5_0", .objects = kLeastCgroupObjects - 1}};
  EXPECT_EQ(Only(machine).id, "cgroup_too_low");
  EXPECT_EQ(Only(machine).severity, Severity::kError);
  machine.system.cgroup_limits = {{.device = "mlx5_0", .contexts = 0}};
  EXPECT_EQ(Only(machine).id, "cgroup_too_low");
}

TEST(CheckDeviceTest, ACgroupsLimitOfAnotherDeviceIsNotItsOwn) {
  Machine machine = HealthyMachine();
  machine.system.cgroup_limits = {{.device = "mlx5_1", .objects = 0}};
  EXPECT_THAT(CheckDevice(machine.devices[0], machine), IsEmpty());
}

}  // namespace
}  // namespace rdma_info
