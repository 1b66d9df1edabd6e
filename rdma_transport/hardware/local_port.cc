#include "rdma_transport/hardware/local_port.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

std::vector<ibv_gid_entry> ReadGidTable(Device* device,
                                        const ibv_port_attr& port) {
  // The table of all ports: no port has a longer one than another.
  std::vector<ibv_gid_entry> table(static_cast<size_t>(port.gid_tbl_len) *
                                   device->attributes().phys_port_cnt);
  const ssize_t count =
      ibv_query_gid_table(device->context(), table.data(), table.size(), 0);
  table.resize(count > 0 ? count : 0);
  return table;
}

absl::StatusOr<ibv_port_attr> QueryPort(Device* device, uint8_t port_num) {
  ibv_port_attr attributes;
  const int error = ibv_query_port(device->context(), port_num, &attributes);
  if (error == 0) return attributes;
  return VerbsError(
      "ibv_query_port", error,
      absl::StrCat("port ", port_num, " of ", std::string(device->name())));
}

// The first port that is active, or just the first.
uint8_t FirstActivePort(Device* device) {
  for (uint8_t port = 1; port <= device->attributes().phys_port_cnt; ++port) {
    const absl::StatusOr<ibv_port_attr> attributes = QueryPort(device, port);
    if (attributes.ok() && attributes->state == IBV_PORT_ACTIVE) return port;
  }
  return 1;
}

absl::Status NoSuchGid(Device* device, const SocketAddress& address,
                       const std::vector<ibv_gid_entry>& table) {
  std::vector<std::string> gids;
  for (const ibv_gid_entry& entry : table) {
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) {
      gids.push_back(GidToString(entry.gid));
    }
  }
  return absl::NotFoundError(absl::StrCat(
      "TCP connected from ", address.ToString(),
      ", which is no RoCE v2 GID of ", std::string(device->name()), " (it has ",
      gids.empty() ? "none" : absl::StrJoin(gids, ", "),
      "): use an address of the device's network interface, or set gid_index"));
}

absl::Status PortIsDown(Device* device, uint8_t port_num,
                        const ibv_port_attr& port) {
  return absl::UnavailableError(absl::StrCat(
      "port ", port_num, " of ", std::string(device->name()), " is ",
      ibv_port_state_str(port.state), ": bring its link up (`rdma link`)"));
}

}  // namespace

ibv_gid GidOf(const SocketAddress& address) {
  ibv_gid gid = {};
  if (address.family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    std::memcpy(gid.raw, &v6.sin6_addr, sizeof(gid.raw));
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &v4.sin_addr, sizeof(v4.sin_addr));
  }
  return gid;
}

std::string GidToString(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
  return text;
}

const ibv_gid_entry* FindRoceGid(absl::Span<const ibv_gid_entry> table,
                                 const ibv_gid& gid,
                                 std::optional<uint8_t> port_num) {
  for (const ibv_gid_entry& entry : table) {
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
        entry.port_num == port_num.value_or(entry.port_num) &&
        std::memcmp(entry.gid.raw, gid.raw, sizeof(gid.raw)) == 0) {
      return &entry;
    }
  }
  return nullptr;
}

absl::StatusOr<LocalPort> ChooseLocalPort(Device* device,
                                          const HardwareOptions& options,
                                          const SocketAddress& local_address) {
  LocalPort local;
  local.port_num = options.port_num.value_or(FirstActivePort(device));
  absl::StatusOr<ibv_port_attr> port = QueryPort(device, local.port_num);
  if (!port.ok()) return port.status();
  local.ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;
  if (options.gid_index.has_value()) {
    local.gid_index = *options.gid_index;
  } else if (local.ethernet) {
    const std::vector<ibv_gid_entry> table = ReadGidTable(device, *port);
    const ibv_gid_entry* const entry =
        FindRoceGid(table, GidOf(local_address), options.port_num);
    if (entry == nullptr) return NoSuchGid(device, local_address, table);
    local.port_num = static_cast<uint8_t>(entry->port_num);
    local.gid_index = static_cast<uint8_t>(entry->gid_index);
    port = QueryPort(device, local.port_num);
    if (!port.ok()) return port.status();
  }
  if (port->state != IBV_PORT_ACTIVE) {
    return PortIsDown(device, local.port_num, *port);
  }
  if (ibv_query_gid(device->context(), local.port_num, local.gid_index,
                    &local.gid) != 0) {
    return VerbsError("ibv_query_gid", errno,
                      absl::StrCat("index ", local.gid_index, " of ",
                                   std::string(device->name())));
  }
  local.lid = port->lid;
  local.active_mtu = port->active_mtu;
  return local;
}

}  // namespace rdma
