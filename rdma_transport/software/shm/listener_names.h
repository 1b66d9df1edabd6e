// How a TCP-like address names a Unix-domain socket: the abstract name
// "verbena/soft0/127.0.0.1:50051", which vanishes with its socket and belongs
// to the network namespace, as a TCP port does.
//
//   absl::StatusOr<BoundSocket> bound = BindListener(address, random);
//   absl::StatusOr<UniqueFd> socket = ConnectToListener(address);
//
// Wildcards behave as with TCP: a listener on 0.0.0.0 or [::] (which takes IPv4
// as well) serves every address of this host, and conflicts with one on the
// same port of any of them.
//
// Thread rule: none; the functions share nothing.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LISTENER_NAMES_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LISTENER_NAMES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma::soft {

struct BoundSocket {
  UniqueFd socket;        // listens, and does not block
  SocketAddress address;  // with the port that was picked
};

// Binds and listens. Port 0: picks a free one of the ephemeral range by
// `random`. ALREADY_EXISTS names the process that has the address, where that
// is known; INVALID_ARGUMENT: not an address of this host.
absl::StatusOr<BoundSocket> BindListener(
    const SocketAddress& address, int backlog,
    const std::function<uint32_t()>& random);

enum class ConnectResult {
  kConnected,
  kNobody,  // nothing listens there
  kBusy,    // the listener's backlog is full: try again later
  kFailed,  // errno
};

// Connects `*socket`, which does not block, to the listener that serves
// `address`: the one on that very address, or else a wildcard.
ConnectResult ConnectToListener(const SocketAddress& address, UniqueFd* socket);

// Whether this host has the address: a loopback one, a wildcard, or one of its
// interfaces.
bool IsAddressOfThisHost(const SocketAddress& address);

// A port of the ephemeral range.
uint16_t EphemeralPort(uint32_t random);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LISTENER_NAMES_H_
