// Goal: what the kernel shows and what providers open comes together. Method:
// the kernel's files of the test, a provider made up, and the software device
// itself; opened NICs are for the test in the VM.
#include "tools/rdma_info/devices.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/software/software_provider.h"
#include "tools/rdma_info/made_up_files.h"
#include "tools/rdma_info/made_up_machine.h"

namespace rdma_info {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DevicesTest, TheSoftwareDeviceIsAlwaysThere) {
  MadeUpFiles files;
  MadeUpProvider hardware({});
  const auto software = rdma::MakeSoftwareProvider();
  const auto devices = CollectDevices(files.roots(), &hardware, software.get());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "soft0");
  EXPECT_TRUE(devices[0].is_software);
  EXPECT_TRUE(devices[0].opened.ok()) << devices[0].opened;
  EXPECT_GT(devices[0].attributes.max_qp, 0);
  EXPECT_GT(devices[0].max_inline_data, 0u);
  EXPECT_EQ(devices[0].useful_inline_data, devices[0].max_inline_data);
}

TEST(DevicesTest, ADeviceThatCannotBeOpenedIsShownWithTheReason) {
  MadeUpFiles files;
  files.Write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  MadeUpProvider hardware({"mlx5_0"});
  MadeUpProvider software({});
  const auto devices = CollectDevices(files.roots(), &hardware, &software);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices[0].is_listed);
  EXPECT_FALSE(devices[0].is_software);
  EXPECT_THAT(devices[0].opened.message(), HasSubstr("mlx5_0 is made up"));
  ASSERT_EQ(devices[0].ports.size(), 1u);
  EXPECT_EQ(devices[0].ports[0].state, IBV_PORT_ACTIVE);
}

TEST(DevicesTest, TheKernelTellsTheGidsOfADeviceThatCannotBeOpened) {
  MadeUpFiles files;
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1";
  files.Write(port + "/link_layer", "Ethernet");
  files.Write(port + "/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001");
  files.Write(port + "/gid_attrs/types/3", "RoCE v2");
  files.Write(port + "/gid_attrs/ndevs/3", "bond0");
  files.Write("sys/class/infiniband/mlx5_0/device/net/eth2/mtu", "1500");
  MadeUpProvider hardware({"mlx5_0"});
  MadeUpProvider software({});
  const auto devices = CollectDevices(files.roots(), &hardware, &software);
  ASSERT_EQ(devices.size(), 1u);
  ASSERT_EQ(devices[0].ports.size(), 1u);
  ASSERT_EQ(devices[0].ports[0].gids.size(), 1u);
  EXPECT_EQ(devices[0].ports[0].gids[0].index, 3);
  EXPECT_THAT(devices[0].ports[0].netdevs, ElementsAre("bond0", "eth2"));
}

TEST(DevicesTest, ADeviceThatLibibverbsDoesNotKnowIsShown) {
  MadeUpFiles files;
  files.Write("sys/class/infiniband/mlx5_0/node_type", "1: CA");
  MadeUpProvider hardware({"mlx5_1"});
  MadeUpProvider software({});
  const auto devices = CollectDevices(files.roots(), &hardware, &software);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_FALSE(devices[0].is_listed);
  EXPECT_FALSE(devices[0].opened.ok());
}

}  // namespace
}  // namespace rdma_info
