// Channels' addresses that name several servers, by lists and by names.
//
// Thread rule: pure functions.
#ifndef VERBENA_RPC_ROUTING_ADDRESS_LIST_H_
#define VERBENA_RPC_ROUTING_ADDRESS_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rpc::routing {

// "rdma://host1:1,host2:2", which gRPC's way to write it,
// "rdma:///host1:1,...", says as well: "rdma://host1:1" and "rdma://host2:2".
// One or more; whether each is an address is the transport's to say.
std::vector<std::string> SplitAddresses(std::string_view address);

// Whether the host of one of those is a name.
bool IsByName(std::string_view address);

// The addresses that a name stands for, IPv4's first, each written as
// `address` is; may block for as long as the resolver does. One that is not
// SCHEME://NAME:PORT or NAME:PORT is what it was. UNAVAILABLE: the name does
// not resolve; says what the resolver said.
absl::StatusOr<std::vector<std::string>> ResolveAddress(
    std::string_view address);

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_ADDRESS_LIST_H_
