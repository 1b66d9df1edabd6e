// Why a device was chosen for an address, or why none was, in one sentence.
#ifndef VERBENA_TOOLS_RDMA_INFO_ADDRESS_REASON_H_
#define VERBENA_TOOLS_RDMA_INFO_ADDRESS_REASON_H_

#include <string>

#include "rdma_transport/provider/provider.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// By the device's GIDs and interfaces in `machine`: "the route to 10.0.0.2
// starts at 10.0.0.1, GID 3 of its port 1 (eth2, RoCE v2)". Where none was
// chosen, what the provider said. Pure; thread-safe.
std::string ReasonOf(const AddressChoice& choice, const Machine& machine);

// "10.0.0.1", "::1": without the port, and without an IPv6 address's brackets.
std::string HostOf(const rdma::SocketAddress& address);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_ADDRESS_REASON_H_
