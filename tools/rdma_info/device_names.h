// Names of what devices say in numbers, or in too few letters. Pure.
#ifndef VERBENA_TOOLS_RDMA_INFO_DEVICE_NAMES_H_
#define VERBENA_TOOLS_RDMA_INFO_DEVICE_NAMES_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

// "NVIDIA (Mellanox)"; "vendor 0x1234" where it is not known. Of a device that
// was not opened (0), what its driver tells.
std::string VendorName(uint32_t vendor_id, const std::string& driver);

// "InfiniBand or RoCE adapter" for CA, "iWARP adapter" for RNIC.
std::string NodeTypeText(const std::string& node_type);

// "ACTIVE", "DOWN", as in sysfs.
std::string PortStateName(ibv_port_state state);

// "Ethernet", "InfiniBand".
std::string NameOf(LinkLayer link_layer);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_DEVICE_NAMES_H_
