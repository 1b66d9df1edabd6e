// The addresses of this transport: "rdma://HOST:PORT" or "HOST:PORT", where
// HOST is an IPv4 address, an IPv6 address in brackets, or a name.
#ifndef VERBENA_RDMA_TRANSPORT_ADDRESS_H_
#define VERBENA_RDMA_TRANSPORT_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// INVALID_ARGUMENT quotes the address and says what an address looks like.
absl::StatusOr<HostPort> ParseAddress(std::string_view address);

// The socket addresses of a host, IPv4 first where a name has both. Numeric
// hosts cost nothing; a name may block for as long as the resolver does.
// UNAVAILABLE: the name does not resolve; says what the resolver said.
absl::StatusOr<std::vector<SocketAddress>> ResolveAddress(
    const HostPort& host_port);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_ADDRESS_H_
