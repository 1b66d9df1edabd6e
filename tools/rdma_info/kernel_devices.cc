#include "tools/rdma_info/kernel_devices.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/rdma_info/gid.h"
#include "tools/rdma_info/sysfs.h"

namespace rdma_info {
namespace {

constexpr char kIwarpNode[] = "RNIC";

std::string DevicePath(const Roots& roots, const std::string& name) {
  return roots.sys + "/class/infiniband/" + name;
}

LinkLayer LinkLayerOf(const std::string& word) {
  if (word == "Ethernet") return LinkLayer::kEthernet;
  if (word == "InfiniBand") return LinkLayer::kInfiniband;
  return LinkLayer::kUnknown;
}

GidType GidTypeOf(const std::string& word, const std::string& node_type,
                  LinkLayer link_layer) {
  if (node_type == kIwarpNode) return GidType::kIwarp;
  if (link_layer != LinkLayer::kEthernet) return GidType::kInfiniband;
  // The other is "IB/RoCE v1".
  return word == "RoCE v2" ? GidType::kRoceV2 : GidType::kRoceV1;
}

void AddOnce(std::vector<std::string>& names, std::string name) {
  if (name.empty() || std::count(names.begin(), names.end(), name) > 0) return;
  names.push_back(std::move(name));
}

// Network interfaces of the adapter that belong to the port: two ports of one
// adapter tell theirs apart by dev_port, which counts from 0.
void AddAdapterNetdevs(const Roots& roots, const std::string& device_path,
                       size_t port_count, Port& port) {
  for (const std::string& name : ListNames(device_path + "/device/net")) {
    const uint64_t dev_port =
        ReadNumber(roots.sys + "/class/net/" + name + "/dev_port");
    if (port_count == 1 || dev_port + 1 == static_cast<uint64_t>(port.number)) {
      AddOnce(port.netdevs, name);
    }
  }
}

Port CollectPort(const Roots& roots, const std::string& device_path,
                 const std::string& number, size_t port_count) {
  const std::string path = device_path + "/ports/" + number;
  Port port;
  port.number = std::atoi(number.c_str());
  port.state =
      static_cast<ibv_port_state>(ReadEnumerated(path + "/state").number);
  port.physical_state = ReadEnumerated(path + "/phys_state").word;
  port.link_layer = LinkLayerOf(ReadLine(path + "/link_layer"));
  port.rate = ReadLine(path + "/rate");
  port.sm_lid = static_cast<uint16_t>(ReadNumber(path + "/sm_lid"));
  // Software devices name the interface that they are on.
  AddOnce(port.netdevs, ReadLine(device_path + "/parent"));
  AddAdapterNetdevs(roots, device_path, port_count, port);
  return port;
}

// "/dev/infiniband/uverbs0", of the interface whose device this is.
std::string NodeOf(const Roots& roots, const std::string& device) {
  const std::string verbs = roots.sys + "/class/infiniband_verbs";
  for (const std::string& name : ListNames(verbs)) {
    if (ReadLine(absl::StrCat(verbs, "/", name, "/ibdev")) == device) {
      return roots.dev + "/infiniband/" + name;
    }
  }
  return "";
}

// Adapters have a driver of the bus. Of software devices, soft-RoCE alone has a
// parent.
std::string DriverOf(const std::string& device_path) {
  std::string driver = LinkedName(device_path + "/device/driver");
  if (driver.empty() && Exists(device_path + "/parent")) return "rdma_rxe";
  return driver;
}

// "0.0.0" is a driver's way to say that there is none.
std::string FirmwareOf(const std::string& device_path) {
  std::string firmware = ReadLine(device_path + "/fw_ver");
  return firmware == "0.0.0" ? "" : firmware;
}

}  // namespace

std::vector<Device> CollectKernelDevices(const Roots& roots) {
  std::vector<Device> devices;
  for (const std::string& name : ListNames(DevicePath(roots, ""))) {
    const std::string path = DevicePath(roots, name);
    Device device;
    device.name = name;
    device.node = NodeOf(roots, name);
    device.access =
        device.node.empty() ? Access::kMissing : AccessTo(device.node);
    device.driver = DriverOf(path);
    device.firmware = FirmwareOf(path);
    device.node_type = ReadEnumerated(path + "/node_type").word;
    const std::vector<std::string> ports = ListNames(path + "/ports");
    for (const std::string& number : ports) {
      device.ports.push_back(CollectPort(roots, path, number, ports.size()));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Gid> CollectKernelGids(const Roots& roots, const Device& device,
                                   const Port& port) {
  const std::string path =
      DevicePath(roots, device.name) + "/ports/" + std::to_string(port.number);
  const std::string attributes = path + "/gid_attrs";
  std::vector<Gid> gids;
  for (const std::string& index : ListNames(path + "/gids")) {
    const std::optional<ibv_gid> raw =
        ParseGid(ReadLine(absl::StrCat(path, "/gids/", index)));
    if (!raw.has_value()) continue;
    const std::string type =
        ReadLine(absl::StrCat(attributes, "/types/", index));
    gids.push_back(
        {.index = std::atoi(index.c_str()),
         .gid = *raw,
         .type = GidTypeOf(type, device.node_type, port.link_layer),
         .netdev = ReadLine(absl::StrCat(attributes, "/ndevs/", index))});
  }
  return gids;
}

}  // namespace rdma_info
