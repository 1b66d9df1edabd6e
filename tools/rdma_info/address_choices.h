// Which device the transport would take for an address: what each provider
// answers (rdma::Provider::DeviceFor), for connecting and for listening.
#ifndef VERBENA_TOOLS_RDMA_INFO_ADDRESS_CHOICES_H_
#define VERBENA_TOOLS_RDMA_INFO_ADDRESS_CHOICES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rdma_transport/address.h"
#include "rdma_transport/provider/provider.h"
#include "tools/rdma_info/machine.h"

namespace rdma_info {

// `text` is only kept to be shown; `host_port` is what it says. A name is
// resolved, and all its addresses are asked for, for both uses (0.0.0.0 and
// [::] for listening only). Blocks for as long as the
// resolver does, and for `timeout` at most for each address.
AddressReport CollectAddressChoices(const std::string& text,
                                    const rdma::HostPort& host_port,
                                    rdma::Provider* hardware,
                                    rdma::Provider* software,
                                    absl::Duration timeout);

// The local address that the system's route to `address` starts at; nothing is
// sent. UNAVAILABLE: no route.
absl::StatusOr<rdma::SocketAddress> LocalAddressTowards(
    const rdma::SocketAddress& address);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_ADDRESS_CHOICES_H_
