// The devices of this machine: the kernel's (kernel_devices.h), with what they
// say of themselves when they are opened, and Verbena's own.
//
//   const std::unique_ptr<rdma::Provider> hardware =
//   rdma::MakeHardwareProvider(); const std::unique_ptr<rdma::Provider>
//   software = rdma::MakeSoftwareProvider(); std::vector<Device> devices =
//       CollectDevices(Roots(), hardware.get(), software.get());
//
// Opens every device, and closes it again: some milliseconds each.
#ifndef VERBENA_TOOLS_RDMA_INFO_DEVICES_H_
#define VERBENA_TOOLS_RDMA_INFO_DEVICES_H_

#include <vector>

#include "rdma_transport/provider/provider.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// Devices of the kernel first, by name, then the software provider's. A device
// that cannot be opened is in it, with the reason.
std::vector<Device> CollectDevices(const Roots& roots, rdma::Provider* hardware,
                                   rdma::Provider* software);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_DEVICES_H_
