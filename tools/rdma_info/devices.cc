#include "tools/rdma_info/devices.h"

#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/rdma_info/kernel_devices.h"

namespace rdma_info {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name) > 0;
}

int MtuBytes(ibv_mtu mtu) {
  // IBV_MTU_256 is 1, IBV_MTU_4096 is 5.
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : 0;
}

GidType TypeOf(const ibv_gid_entry& entry, const ibv_context* context) {
  if (context->device->transport_type == IBV_TRANSPORT_IWARP) {
    return GidType::kIwarp;
  }
  switch (entry.gid_type) {
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::kRoceV2;
    default:
      return GidType::kInfiniband;
  }
}

Gid GidOf(const ibv_gid_entry& entry, const ibv_context* context) {
  char netdev[IF_NAMESIZE] = "";
  if (entry.ndev_ifindex != 0) if_indextoname(entry.ndev_ifindex, netdev);
  return {.index = static_cast<int>(entry.gid_index),
          .gid = entry.gid,
          .type = TypeOf(entry, context),
          .netdev = netdev};
}

// Of all ports. Nothing where the kernel cannot tell, which is then in sysfs.
std::optional<std::vector<ibv_gid_entry>> QueryGids(ibv_context* context,
                                                    size_t most) {
  std::vector<ibv_gid_entry> entries(most);
  const ssize_t count =
      ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  if (count < 0) return std::nullopt;
  entries.resize(static_cast<size_t>(count));
  return entries;
}

// The device's own word on its ports, whose files were read before. False: it
// does not tell its GIDs.
bool QueryPorts(ibv_context* context, Device& device) {
  size_t most_gids = 0;
  for (Port& port : device.ports) {
    ibv_port_attr attributes;
    const auto number = static_cast<uint8_t>(port.number);
    if (ibv_query_port(context, number, &attributes) != 0) continue;
    port.state = attributes.state;
    port.active_mtu_bytes = MtuBytes(attributes.active_mtu);
    port.max_mtu_bytes = MtuBytes(attributes.max_mtu);
    port.sm_lid = attributes.sm_lid;
    most_gids += static_cast<size_t>(std::max(attributes.gid_tbl_len, 0));
  }
  const std::optional<std::vector<ibv_gid_entry>> entries =
      QueryGids(context, most_gids);
  if (!entries.has_value()) return false;
  for (Port& port : device.ports) {
    for (const ibv_gid_entry& entry : *entries) {
      if (entry.port_num == static_cast<uint32_t>(port.number)) {
        port.gids.push_back(GidOf(entry, context));
      }
    }
  }
  return true;
}

bool QueryOdp(ibv_context* context) {
  ibv_device_attr_ex attributes = {};
  if (ibv_query_device_ex(context, nullptr, &attributes) != 0) return false;
  return (attributes.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 &&
         attributes.odp_caps.per_transport_caps.rc_odp_caps != 0;
}

// Opens the device, for what the provider says of it. Null where it cannot be
// opened.
std::unique_ptr<rdma::Device> OpenDevice(rdma::Provider* provider,
                                         Device& device) {
  absl::StatusOr<std::unique_ptr<rdma::Device>> opened =
      provider->Open(device.name, {});
  device.opened = opened.status();
  if (!opened.ok()) return nullptr;
  device.attributes = (*opened)->attributes();
  device.max_inline_data = (*opened)->max_inline_data();
  device.useful_inline_data = (*opened)->useful_inline_data();
  return *std::move(opened);
}

// Interfaces of GIDs come first: with bonding or VLANs they are others than the
// adapter's, and have the addresses.
void AddNetdevsOfGids(Port& port) {
  std::vector<std::string> names;
  for (const Gid& gid : port.gids) names.push_back(gid.netdev);
  names.insert(names.end(), port.netdevs.begin(), port.netdevs.end());
  port.netdevs.clear();
  for (const std::string& name : names) {
    if (!name.empty() && !Contains(port.netdevs, name)) {
      port.netdevs.push_back(name);
    }
  }
}

// A device of the kernel, opened or not.
void CollectHardware(const Roots& roots, rdma::Provider* hardware,
                     Device& device) {
  bool has_gids = false;
  if (!device.is_listed) {
    device.opened = absl::NotFoundError(
        absl::StrCat("libibverbs does not know ", device.name));
  } else if (const auto opened = OpenDevice(hardware, device)) {
    has_gids = QueryPorts(opened->context(), device);
    device.has_odp = QueryOdp(opened->context());
  }
  for (Port& port : device.ports) {
    if (!has_gids) port.gids = CollectKernelGids(roots, device, port);
    AddNetdevsOfGids(port);
  }
}

}  // namespace

std::vector<Device> CollectDevices(const Roots& roots, rdma::Provider* hardware,
                                   rdma::Provider* software) {
  std::vector<Device> devices = CollectKernelDevices(roots);
  const std::vector<std::string> listed = hardware->ListDevices();
  for (Device& device : devices) {
    device.is_listed = Contains(listed, device.name);
    CollectHardware(roots, hardware, device);
  }
  for (const std::string& name : software->ListDevices()) {
    Device device;
    device.name = name;
    device.is_software = true;
    OpenDevice(software, device);
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace rdma_info
