// The RDMA devices as the kernel shows them to everybody, in
// /sys/class/infiniband: what is there to say even where this process cannot
// open them, or libibverbs does not know them.
//
//   for (const Device& device : CollectKernelDevices(Roots())) ...
//
// Fields that only the opened device has (attributes, MTUs, inline data) stay
// at their defaults; devices.h adds them. GIDs are read apart: their tables are
// long (1024 files of a port), and an opened device tells them at once.
// Documentation/ABI/stable/ sysfs-class-infiniband of Linux has the files'
// meaning. Thread-safe.
#ifndef VERBENA_TOOLS_RDMA_INFO_KERNEL_DEVICES_H_
#define VERBENA_TOOLS_RDMA_INFO_KERNEL_DEVICES_H_

#include <vector>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

// Sorted by name; `opened` is OK and `is_listed` true, until somebody tries.
std::vector<Device> CollectKernelDevices(const Roots& roots);

// What is not empty of the table of a port, whose GIDs have a type by the kind
// of the device.
std::vector<Gid> CollectKernelGids(const Roots& roots, const Device& device,
                                   const Port& port);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_KERNEL_DEVICES_H_
