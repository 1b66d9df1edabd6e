// Channels' addresses that name several servers.
#ifndef VERBENA_RPC_ROUTING_ADDRESS_LIST_H_
#define VERBENA_RPC_ROUTING_ADDRESS_LIST_H_

#include <string>
#include <string_view>
#include <vector>

namespace rpc::routing {

// "rdma://host1:1,host2:2", which gRPC's way to write it,
// "rdma:///host1:1,...", says as well: "rdma://host1:1" and "rdma://host2:2".
// One or more; whether each is an address is the transport's to say.
std::vector<std::string> SplitAddresses(std::string_view address);

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_ADDRESS_LIST_H_
