// Which RDMA device an address is reached through: rdma_cm asks the system's
// routing table and neighbour discovery.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_ROUTE_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_ROUTE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// See Provider::DeviceFor. 0.0.0.0 and [::] are answered by every device: the
// first with an active port. Blocks for as long as `timeout`.
absl::StatusOr<std::string> FindDeviceByRoute(const SocketAddress& address,
                                              AddressUse use,
                                              absl::Duration timeout);

// The first device that has an active port. NOT_FOUND: there is none, or which
// ports are down.
absl::StatusOr<std::string> FindActiveDevice();

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_ROUTE_H_
