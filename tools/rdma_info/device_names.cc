#include "tools/rdma_info/device_names.h"

#include "absl/strings/str_cat.h"

namespace rdma_info {
namespace {

// As drivers fill ibv_device_attr.vendor_id: the vendor's number on the PCI
// bus, or in its MAC addresses.
struct Vendor {
  uint32_t id;
  const char* name;
};

constexpr Vendor kVendors[] = {
    {0x02c9, "NVIDIA (Mellanox)"},
    {0x15b3, "NVIDIA (Mellanox)"},
    {0x8086, "Intel"},
    {0x14e4, "Broadcom"},
    {0x1425, "Chelsio"},
    {0x1077, "Marvell (QLogic)"},
    {0x19e5, "Huawei"},
    {0x1ded, "Alibaba"},
    {0x1d0f, "Amazon"},
    {0x1414, "Microsoft"},
    {0x15ad, "VMware"},
    {0xffffff, "soft-RoCE (no NIC)"},
};

}  // namespace

std::string VendorName(uint32_t vendor_id, const std::string& driver) {
  if (driver == "rdma_rxe") vendor_id = 0xffffff;
  for (const Vendor& vendor : kVendors) {
    if (vendor.id == vendor_id) return vendor.name;
  }
  if (vendor_id == 0) return "vendor unknown";
  return absl::StrCat("vendor 0x", absl::Hex(vendor_id));
}

std::string NodeTypeText(const std::string& node_type) {
  if (node_type == "CA") return "InfiniBand or RoCE adapter";
  if (node_type == "RNIC") return "iWARP adapter";
  return absl::StrCat("node type ", node_type);
}

std::string PortStateName(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_NOP:
      return "NOP";
    case IBV_PORT_DOWN:
      return "DOWN";
    case IBV_PORT_INIT:
      return "INIT";
    case IBV_PORT_ARMED:
      return "ARMED";
    case IBV_PORT_ACTIVE:
      return "ACTIVE";
    case IBV_PORT_ACTIVE_DEFER:
      return "ACTIVE_DEFER";
  }
  return absl::StrCat("state ", static_cast<int>(state));
}

std::string NameOf(LinkLayer link_layer) {
  switch (link_layer) {
    case LinkLayer::kInfiniband:
      return "InfiniBand";
    case LinkLayer::kEthernet:
      return "Ethernet";
    case LinkLayer::kUnknown:
      break;
  }
  return "unknown link layer";
}

}  // namespace rdma_info
