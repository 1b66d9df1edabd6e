// What a device can do beside what the transport takes of it
// (rdma_transport/device_use.h).
#ifndef VERBENA_TOOLS_RDMA_INFO_CAPABILITIES_H_
#define VERBENA_TOOLS_RDMA_INFO_CAPABILITIES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

struct Capability {
  // As ibv_device_attr has it where it has it: "max_qp_wr". A key of the JSON
  // report: never renamed.
  std::string_view name;
  uint64_t device = 0;
  // What the transport takes; nothing where it has no number in mind.
  std::optional<uint64_t> transport;
  bool is_flag = false;  // 0 and 1 are no and yes
  std::string_view meaning;
};

// REQUIRES: device.opened.ok(). Pure; thread-safe.
std::vector<Capability> CapabilitiesOf(const Device& device);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_CAPABILITIES_H_
