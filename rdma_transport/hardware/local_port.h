// The port and the GID by which a device takes part in a connection that is set
// up without rdma_cm.
//
// RoCE addresses hosts by GIDs that are their IP addresses (IBTA annex A17), so
// the address by which TCP reached the peer is the GID to use. "The last GID",
// or a fixed index, would pick another network's or another container's.
//
// Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_LOCAL_PORT_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_LOCAL_PORT_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rdma_transport/hardware/hardware_options.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

struct LocalPort {
  uint8_t port_num = 0;
  uint8_t gid_index = 0;
  ibv_gid gid = {};
  uint16_t lid = 0;       // InfiniBand's; 0 on Ethernet
  bool ethernet = false;  // RoCE: packets need a GRH
  ibv_mtu active_mtu = IBV_MTU_256;
};

// An IPv6 address as it is, an IPv4 address as ::ffff:a.b.c.d (RFC 4291,
// 2.5.5.2).
ibv_gid GidOf(const SocketAddress& address);

// "::ffff:10.0.0.1", "fe80::1".
std::string GidToString(const ibv_gid& gid);

// The RoCE v2 entry with that GID, on `port_num` if that is given; or null.
const ibv_gid_entry* FindRoceGid(absl::Span<const ibv_gid_entry> table,
                                 const ibv_gid& gid,
                                 std::optional<uint8_t> port_num);

// By the options, and where they are silent by the local address of the TCP
// connection. NOT_FOUND: no GID is that address, and which there are.
// UNAVAILABLE: the port is down.
absl::StatusOr<LocalPort> ChooseLocalPort(Device* device,
                                          const HardwareOptions& options,
                                          const SocketAddress& local_address);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_LOCAL_PORT_H_
