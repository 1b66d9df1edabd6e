#include "tools/rdma_info/gid.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "rdma_transport/hardware/local_port.h"

namespace rdma_info {
namespace {

in6_addr AsIpv6(const ibv_gid& gid) {
  in6_addr address;
  std::memcpy(&address, gid.raw, sizeof(address));
  return address;
}

}  // namespace

std::string NameOf(GidType type) {
  switch (type) {
    case GidType::kInfiniband:
      return "IB";
    case GidType::kIwarp:
      return "iWARP";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
  }
  return "unknown";
}

bool IsRoce(GidType type) {
  return type == GidType::kRoceV1 || type == GidType::kRoceV2;
}

std::optional<ibv_gid> ParseGid(const std::string& text) {
  ibv_gid gid = {};
  if (inet_pton(AF_INET6, text.c_str(), gid.raw) != 1) return std::nullopt;
  const bool is_empty = std::all_of(std::begin(gid.raw), std::end(gid.raw),
                                    [](uint8_t byte) { return byte == 0; });
  if (is_empty) return std::nullopt;
  return gid;
}

bool IsIpv4(const Gid& gid) {
  const in6_addr address = AsIpv6(gid.gid);
  return IsRoce(gid.type) && IN6_IS_ADDR_V4MAPPED(&address);
}

std::string TextOf(const Gid& gid) { return rdma::GidToString(gid.gid); }

std::string IpAddressOf(const Gid& gid) {
  const in6_addr address = AsIpv6(gid.gid);
  if (!IsRoce(gid.type) || IN6_IS_ADDR_LINKLOCAL(&address)) {
    return "";
  }
  if (!IsIpv4(gid)) return TextOf(gid);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, gid.gid.raw + 12, text, sizeof(text));
  return text;
}

}  // namespace rdma_info
