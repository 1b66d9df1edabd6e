#include "tools/rdma_info/made_up_machine.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/local_port.h"

namespace rdma_info {
namespace {

// What a NIC of these days says.
ibv_device_attr NicAttributes() {
  ibv_device_attr attributes = {};
  attributes.vendor_id = 0x02c9;
  attributes.vendor_part_id = 4129;
  attributes.max_mr_size = UINT64_MAX;
  attributes.max_qp = 131072;
  attributes.max_qp_wr = 32768;
  attributes.device_cap_flags =
      IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  attributes.max_sge = 30;
  attributes.max_cq = 1 << 24;
  attributes.max_cqe = 4194303;
  attributes.max_mr = 1 << 24;
  attributes.max_mw = 1 << 24;
  attributes.max_qp_rd_atom = 16;
  attributes.max_qp_init_rd_atom = 16;
  attributes.atomic_cap = IBV_ATOMIC_HCA;
  attributes.max_srq = 1 << 23;
  attributes.max_srq_wr = 32767;
  attributes.phys_port_cnt = 1;
  return attributes;
}

Device Nic(const std::string& name) {
  Device device;
  device.name = name;
  device.node = "/dev/infiniband/uverbs0";
  device.driver = "mlx5_core";
  device.firmware = "22.36.1010";
  device.node_type = "CA";
  device.attributes = NicAttributes();
  device.max_inline_data = 956;
  device.useful_inline_data = 512;
  return device;
}

Port ActivePort(LinkLayer link_layer, const std::string& netdev) {
  Port port;
  port.state = IBV_PORT_ACTIVE;
  port.physical_state = "LinkUp";
  port.link_layer = link_layer;
  port.rate = "100 Gb/sec (4X EDR)";
  port.active_mtu_bytes = 4096;
  port.max_mtu_bytes = 4096;
  port.netdevs = {netdev};
  return port;
}

}  // namespace

System HealthySystem() {
  System system;
  system.kernel = "6.1.0";
  system.memory_bytes = uint64_t{16} << 30;
  system.has_uverbs = true;
  system.has_rdma_ucm = true;
  system.rdma_cm = Access::kGranted;
  return system;
}

Gid RoceGid(int index, const std::string& host, const std::string& netdev) {
  return {.index = index,
          .gid = rdma::GidOf(AddressOf(host, 0)),
          .type = GidType::kRoceV2,
          .netdev = netdev};
}

Device RoceDevice(const std::string& name, const std::string& netdev,
                  const std::string& host) {
  Device device = Nic(name);
  Port port = ActivePort(LinkLayer::kEthernet, netdev);
  port.gids = {RoceGid(0, "fe80::1", netdev), RoceGid(1, host, netdev)};
  device.ports = {port};
  return device;
}

Device InfinibandDevice(const std::string& name, const std::string& netdev) {
  Device device = Nic(name);
  Port port = ActivePort(LinkLayer::kInfiniband, netdev);
  port.sm_lid = 1;
  port.gids = {{.index = 0,
                .gid = rdma::GidOf(AddressOf("fe80::ec0d:9a03:1:2", 0)),
                .type = GidType::kInfiniband}};
  device.ports = {port};
  return device;
}

Device SoftwareDevice() {
  Device device = Nic("soft0");
  device.is_software = true;
  device.attributes.vendor_id = 0;
  device.node.clear();
  device.driver.clear();
  device.node_type.clear();
  return device;
}

Netdev EthernetDevice(const std::string& name, const std::string& host) {
  return {.name = name,
          .mtu_bytes = 9000,
          .is_up = true,
          .has_carrier = true,
          .addresses = {host}};
}

Machine HealthyMachine() {
  Machine machine;
  machine.system = HealthySystem();
  machine.devices = {RoceDevice("mlx5_0", "eth2", "10.0.0.1"),
                     SoftwareDevice()};
  machine.netdevs = {EthernetDevice("eth2", "10.0.0.1")};
  return machine;
}

rdma::SocketAddress AddressOf(const std::string& host, uint16_t port) {
  return rdma::SocketAddress::FromNumeric(host, port).value();
}

absl::StatusOr<std::unique_ptr<rdma::Device>> MadeUpProvider::Open(
    std::string_view device_name, const rdma::DeviceOptions&) {
  return absl::UnavailableError(
      absl::StrCat(std::string(device_name), " is made up"));
}

absl::StatusOr<std::string> MadeUpProvider::DeviceFor(
    const rdma::SocketAddress& address, rdma::AddressUse use, absl::Duration) {
  const auto found = answers_.find({address.ToString(), use});
  if (found != answers_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("no device for ", address.ToString()));
}

}  // namespace rdma_info
