// Whether an address is one of this host's.
//
//   if (IsLocalAddress(address)) ...  // a process of this host answers there
#ifndef VERBENA_RDMA_TRANSPORT_PROVIDER_LOCAL_ADDRESS_H_
#define VERBENA_RDMA_TRANSPORT_PROVIDER_LOCAL_ADDRESS_H_

#include "rdma_transport/provider/provider.h"

namespace rdma {

// True for loopback addresses, for those of the host's interfaces, and for
// 0.0.0.0 and [::]; the port does not matter. Asks the kernel by bind(2), which
// knows what address lists do not say (all of 127/8, local routes). Does not
// block. Thread-safe.
bool IsLocalAddress(SocketAddress address);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_PROVIDER_LOCAL_ADDRESS_H_
