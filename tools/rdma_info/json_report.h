// The report for programs: one JSON object. Names of fields, and what strings
// of a fixed set say, stay as they are; fields may be added.
//
//   {
//     "exit_status": 0 | 1,
//     "hardware": "ready" | "unusable" | "none",
//     "usable_devices": ["mlx5_0"],
//     "system": {
//       "kernel", "memory_bytes",
//       "memlock_bytes", "memlock_hard_bytes": bytes, or null: unlimited,
//       "ignores_memlock", "ib_uverbs", "rdma_ucm": true | false,
//       "rdma_cm_access": "granted" | "denied" | "missing",
//       "fork": "unneeded" | "enabled" | "failed",
//       "huge_pages": pages reserved,
//       "cgroup_limits": [{"device", "hca_handle", "hca_object": or null}]
//     },
//     "devices": [{
//       "name", "provider": "hardware" | "software",
//       "node": "/dev/infiniband/uverbs0", "access": as of rdma_cm,
//       "opened", "error": why not, or null,
//       "driver", "vendor", "vendor_id", "vendor_part_id", "firmware",
//       "node_type": "CA" | "RNIC" | ...,
//       "ports": [{
//         "number", "state": "ACTIVE" | "DOWN" | "INIT" | ...,
//         "physical_state", "link_layer": "Ethernet" | "InfiniBand",
//         "rate", "active_mtu_bytes", "max_mtu_bytes": or null,
//         "sm_lid", "netdevs": ["eth2"],
//         "gids": [{"index", "gid", "type": "IB" | "RoCE v1" | "RoCE v2" |
//                   "iWARP", "netdev", "ip_address": or null}]
//       }],
//       "capabilities": {"max_qp_wr": {"device": 32768, "transport": 256},
//                        "atomics": {"device": true, "transport": false}, ...}
//     }],
//     "netdevs": [{"name", "mtu_bytes", "up", "carrier", "addresses": []}],
//     "address": null, or {
//       "text", "error": why the name has no address, or null,
//       "choices": [{"address", "use": "connect" | "listen",
//                    "provider": "hardware" | "software",
//                    "device": or null, "reason"}]
//     },
//     "findings": [{"severity": "error" | "warning" | "note", "id", "subject",
//                   "what", "why", "fix": ["command  # comment"]}]
//   }
//
// The software device has "ports": []; a device that was not opened has
// "capabilities": {}. What is not known is an empty string.
#ifndef VERBENA_TOOLS_RDMA_INFO_JSON_REPORT_H_
#define VERBENA_TOOLS_RDMA_INFO_JSON_REPORT_H_

#include <string>

#include "tools/rdma_info/diagnose.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// Indented, with a line end. Bytes that are no UTF-8 (of a host's name on the
// command line) are replaced. Pure; thread-safe.
std::string JsonReport(const Machine& machine, const Diagnosis& diagnosis);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_JSON_REPORT_H_
