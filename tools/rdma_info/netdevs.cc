#include "tools/rdma_info/netdevs.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tools/rdma_info/sysfs.h"

namespace rdma_info {
namespace {

using InterfaceList = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

InterfaceList GetInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  return InterfaceList(list, &freeifaddrs);
}

// Empty for other families, and for link-local addresses of IPv6.
std::string UsableAddress(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return "";
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  }
  return text;
}

Netdev& FindOrAdd(std::vector<Netdev>& netdevs, const std::string& name) {
  const auto found =
      std::find_if(netdevs.begin(), netdevs.end(),
                   [&](const Netdev& netdev) { return netdev.name == name; });
  if (found != netdevs.end()) return *found;
  netdevs.push_back({.name = name});
  return netdevs.back();
}

}  // namespace

std::vector<Netdev> CollectNetdevs(const Roots& roots) {
  std::vector<Netdev> netdevs;
  const InterfaceList interfaces = GetInterfaces();
  // One entry for each address, and one at least for each interface.
  for (const ifaddrs* entry = interfaces.get(); entry != nullptr;
       entry = entry->ifa_next) {
    Netdev& netdev = FindOrAdd(netdevs, entry->ifa_name);
    netdev.is_up = (entry->ifa_flags & IFF_UP) != 0;
    netdev.has_carrier = (entry->ifa_flags & IFF_RUNNING) != 0;
    std::string address = UsableAddress(entry->ifa_addr);
    if (!address.empty()) netdev.addresses.push_back(std::move(address));
  }
  for (Netdev& netdev : netdevs) {
    netdev.mtu_bytes = static_cast<int>(
        ReadNumber(roots.sys + "/class/net/" + netdev.name + "/mtu"));
  }
  return netdevs;
}

}  // namespace rdma_info
