// A channel's transport where it has several addresses, a service config, or is
// to repeat calls: on top of one transport for each address.
//
// Handles are its own, so that a call keeps its name when it moves to another
// transport; see routed_call.h. A thread that waits does so in the transport of
// the first address, and is woken there by what happens on the others.
//
// Thread rule: as ClientTransport. The destructor waits for callbacks.
#ifndef VERBENA_RPC_ROUTING_ROUTING_TRANSPORT_H_
#define VERBENA_RPC_ROUTING_ROUTING_TRANSPORT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/routing/address_list.h"
#include "rpc/routing/routing_options.h"
#include "rpc/transport.h"

namespace rpc::routing {

// Of the balancing policy; empty where the service config is wrong.
std::string PolicyName(const RoutingOptions& options);

// Whether a channel to `address` needs one; others do without its cost.
bool IsNeeded(std::string_view address, const RoutingOptions& options);

// What ResolveAddress does; may block, and is called on any thread, one at a
// time.
using NameResolver =
    std::function<absl::StatusOr<std::vector<std::string>>(std::string_view)>;

// INVALID_ARGUMENT: an address or an option is wrong; the text says which.
absl::StatusOr<std::unique_ptr<ClientTransport>> CreateRoutingTransport(
    std::string_view address, const TransportOptions& transport_options,
    const RoutingOptions& options,
    const NameResolver& resolve_name = ResolveAddress);

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_ROUTING_TRANSPORT_H_
