// GIDs: the addresses that RDMA ports have, and what IP has to do with them.
//
// On RoCE a GID is an IP address: an IPv6 one as it is, an IPv4 one as
// ::ffff:a.b.c.d (IBTA annex A17). Every port also has one made of its MAC
// address, fe80::..., which no rdma:// address can name. On InfiniBand a GID is
// a subnet prefix and a GUID, and IP addresses are IPoIB's.
//
// Pure; thread-safe.
#ifndef VERBENA_TOOLS_RDMA_INFO_GID_H_
#define VERBENA_TOOLS_RDMA_INFO_GID_H_

#include <infiniband/verbs.h>

#include <optional>
#include <string>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

// "RoCE v2", "RoCE v1", "IB", "iWARP".
std::string NameOf(GidType type);

// Whether GIDs of that type are IP addresses.
bool IsRoce(GidType type);

// "fe80:0000:..." as in sysfs. Nothing for an empty entry, and for what is no
// GID.
std::optional<ibv_gid> ParseGid(const std::string& text);

// "fe80::1", "::ffff:10.0.0.1".
std::string TextOf(const Gid& gid);

// The IP address that the GID is: "10.0.0.1", "2001:db8::1"; empty where it is
// none that a host is reached by.
std::string IpAddressOf(const Gid& gid);

bool IsIpv4(const Gid& gid);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_GID_H_
