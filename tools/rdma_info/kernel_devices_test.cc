// Goal: devices are seen without opening them. Method: the kernel's files of
// three kinds of machine, written down from real ones.
#include "tools/rdma_info/kernel_devices.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/rdma_info/gid.h"
#include "tools/rdma_info/made_up_files.h"

namespace rdma_info {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void WriteDevice(const MadeUpFiles& files, const std::string& name) {
  const std::string device = "sys/class/infiniband/" + name;
  files.Write(device + "/node_type", "1: CA");
  files.Write(device + "/fw_ver", "22.36.1010");
}

std::string WritePort(const MadeUpFiles& files, const std::string& name,
                      const std::string& number,
                      const std::string& link_layer) {
  const std::string port = "sys/class/infiniband/" + name + "/ports/" + number;
  files.Write(port + "/state", "4: ACTIVE");
  files.Write(port + "/phys_state", "5: LinkUp");
  files.Write(port + "/link_layer", link_layer);
  files.Write(port + "/rate", "100 Gb/sec (4X EDR)");
  files.Write(port + "/sm_lid", "0x3");
  return port;
}

void WriteGid(const MadeUpFiles& files, const std::string& port, int index,
              const std::string& gid, const std::string& type,
              const std::string& netdev) {
  const std::string number = std::to_string(index);
  files.Write(port + "/gids/" + number, gid);
  files.Write(port + "/gid_attrs/types/" + number, type);
  files.Write(port + "/gid_attrs/ndevs/" + number, netdev);
}

TEST(KernelDevicesTest, AHostWithoutRdmaHasNone) {
  MadeUpFiles files;
  EXPECT_THAT(CollectKernelDevices(files.roots()), IsEmpty());
}

TEST(KernelDevicesTest, SoftRoce) {
  MadeUpFiles files;
  WriteDevice(files, "rxe0");
  files.Write("sys/class/infiniband/rxe0/fw_ver", "");
  files.Write("sys/class/infiniband/rxe0/parent", "veth0");
  const std::string port = WritePort(files, "rxe0", "1", "Ethernet");
  WriteGid(files, port, 1, "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2",
           "veth0");
  WriteGid(files, port, 2, "0000:0000:0000:0000:0000:0000:0000:0000", "", "");
  const auto devices = CollectKernelDevices(files.roots());
  ASSERT_EQ(devices.size(), 1u);
  const Device& device = devices[0];
  EXPECT_EQ(device.name, "rxe0");
  EXPECT_EQ(device.driver, "rdma_rxe");
  EXPECT_EQ(device.firmware, "");
  EXPECT_EQ(device.node_type, "CA");
  ASSERT_EQ(device.ports.size(), 1u);
  EXPECT_EQ(device.ports[0].state, IBV_PORT_ACTIVE);
  EXPECT_EQ(device.ports[0].physical_state, "LinkUp");
  EXPECT_EQ(device.ports[0].link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(device.ports[0].rate, "100 Gb/sec (4X EDR)");
  EXPECT_THAT(device.ports[0].netdevs, ElementsAre("veth0"));
  const auto gids = CollectKernelGids(files.roots(), device, device.ports[0]);
  ASSERT_EQ(gids.size(), 1u);
  EXPECT_EQ(gids[0].index, 1);
  EXPECT_EQ(gids[0].type, GidType::kRoceV2);
  EXPECT_EQ(gids[0].netdev, "veth0");
  EXPECT_EQ(IpAddressOf(gids[0]), "10.77.0.1");
}

TEST(KernelDevicesTest, PortsOfOneAdapterHaveTheirOwnInterfaces) {
  MadeUpFiles files;
  WriteDevice(files, "mlx4_0");
  files.Link("sys/class/infiniband/mlx4_0/device/driver",
             "../../../bus/pci/drivers/mlx4_core");
  WritePort(files, "mlx4_0", "1", "InfiniBand");
  const std::string second = WritePort(files, "mlx4_0", "2", "Ethernet");
  WriteGid(files, second, 0, "fe80:0000:0000:0000:0202:c9ff:fe00:0001",
           "IB/RoCE v1", "eth1");
  for (const char* netdev : {"ib0", "eth1"}) {
    files.Write(std::string("sys/class/infiniband/mlx4_0/device/net/") +
                    netdev + "/type",
                "");
  }
  files.Write("sys/class/net/ib0/dev_port", "0");
  files.Write("sys/class/net/eth1/dev_port", "1");
  const auto devices = CollectKernelDevices(files.roots());
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].driver, "mlx4_core");
  EXPECT_EQ(devices[0].firmware, "22.36.1010");
  ASSERT_EQ(devices[0].ports.size(), 2u);
  EXPECT_EQ(devices[0].ports[0].link_layer, LinkLayer::kInfiniband);
  EXPECT_EQ(devices[0].ports[0].sm_lid, 3);
  EXPECT_THAT(devices[0].ports[0].netdevs, ElementsAre("ib0"));
  EXPECT_THAT(devices[0].ports[1].netdevs, ElementsAre("eth1"));
  const auto gids =
      CollectKernelGids(files.roots(), devices[0], devices[0].ports[1]);
  ASSERT_EQ(gids.size(), 1u);
  EXPECT_EQ(gids[0].type, GidType::kRoceV1);
}

TEST(KernelDevicesTest, GidsOfIwarpAreNoAddresses) {
  MadeUpFiles files;
  WriteDevice(files, "cxgb4_0");
  files.Write("sys/class/infiniband/cxgb4_0/node_type", "4: RNIC");
  const std::string port = WritePort(files, "cxgb4_0", "1", "Ethernet");
  WriteGid(files, port, 0, "0007:4301:0203:0000:0000:0000:0000:0000",
           "IB/RoCE v1", "");
  const auto devices = CollectKernelDevices(files.roots());
  ASSERT_EQ(devices.size(), 1u);
  const auto gids =
      CollectKernelGids(files.roots(), devices[0], devices[0].ports[0]);
  ASSERT_EQ(gids.size(), 1u);
  EXPECT_EQ(gids[0].type, GidType::kIwarp);
}

TEST(KernelDevicesTest, TheFileToOpenIsTheOneThatNamesTheDevice) {
  MadeUpFiles files;
  WriteDevice(files, "mlx5_0");
  WriteDevice(files, "mlx5_1");
  WriteDevice(files, "mlx5_2");
  files.Write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_1");
  files.Write("sys/class/infiniband_verbs/uverbs1/ibdev", "mlx5_0");
  files.Write("dev/infiniband/uverbs1", "");
  const auto devices = CollectKernelDevices(files.roots());
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].node, files.path("dev/infiniband/uverbs1"));
  EXPECT_EQ(devices[0].access, Access::kGranted);
  EXPECT_EQ(devices[1].node, files.path("dev/infiniband/uverbs0"));
  EXPECT_EQ(devices[1].access, Access::kMissing);
  EXPECT_EQ(devices[2].node, "");  // ib_uverbs does not know it
  EXPECT_EQ(devices[2].access, Access::kMissing);
}

}  // namespace
}  // namespace rdma_info
