// The checks of which Diagnose (diagnose.h) is made, by the part of the machine
// that they look at. Each returns what it finds, in no order. Pure.
#ifndef VERBENA_TOOLS_RDMA_INFO_CHECKS_H_
#define VERBENA_TOOLS_RDMA_INFO_CHECKS_H_

#include <cstdint>
#include <vector>

#include "tools/rdma_info/finding.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// Room for the first messages and receives, and for the queues, which NICs have
// in the process's memory (CQ 2 MiB, SRQ 0.5 MiB). On soft-RoCE, whose queues
// do not count, connecting fails with 64 KiB, calls do not end with 2 MiB, and
// 4 MiB are enough.
inline constexpr uint64_t kLeastMemlockBytes = uint64_t{8} << 20;

// What of a device counts against a cgroup's hca_object before the first
// connection is there: PDs, CQs, SRQs, regions, and the QPs that try out inline
// data.
inline constexpr uint64_t kLeastCgroupObjects = 16;

// Headers that an Ethernet frame has room for besides RoCE's payload: GRH 40,
// UDP 8, BTH 12, XRC 4, atomic 28, ICRC 4. iboe_get_mtu of Linux.
inline constexpr int kRoceHeaderBytes = 96;

// Modules, the files of /dev, locked memory, fork. Not of one device, so an
// error here is one for all of them.
std::vector<Finding> CheckSystem(const System& system);

// One RDMA device and its ports. An error here leaves others usable.
std::vector<Finding> CheckDevice(const Device& device, const Machine& machine);
std::vector<Finding> CheckPort(const Device& device, const Port& port,
                               const Machine& machine);

std::vector<Finding> CheckAddress(const AddressReport& report,
                                  bool require_hardware);

// Whether a port has an IP address that rdma_cm finds it by: a GID on RoCE, the
// network interface's on InfiniBand (IPoIB) and iWARP.
bool HasIpAddress(const Device& device, const Port& port,
                  const Machine& machine);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_CHECKS_H_
