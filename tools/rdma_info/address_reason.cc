#include "tools/rdma_info/address_reason.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/local_port.h"
#include "tools/rdma_info/gid.h"

namespace rdma_info {
namespace {

// "GID 3 of its port 1 (eth2, RoCE v2)", of the GID that is the address.
std::string FindAmongGids(const Device& device,
                          const rdma::SocketAddress& address) {
  const ibv_gid wanted = rdma::GidOf(address);
  for (const Port& port : device.ports) {
    for (const Gid& gid : port.gids) {
      if (!IsRoce(gid.type) ||
          std::memcmp(gid.gid.raw, wanted.raw, sizeof(wanted.raw)) != 0) {
        continue;
      }
      return absl::StrCat("GID ", gid.index, " of its port ", port.number, " (",
                          gid.netdev, ", ", NameOf(gid.type), ")");
    }
  }
  return "";
}

// "an address of its interface ib0": IPoIB and iWARP.
std::string FindAmongNetdevs(const Device& device, const Machine& machine,
                             const std::string& host) {
  for (const Netdev& netdev : machine.netdevs) {
    if (std::count(netdev.addresses.begin(), netdev.addresses.end(), host) ==
        0) {
      continue;
    }
    for (const Port& port : device.ports) {
      if (std::count(port.netdevs.begin(), port.netdevs.end(), netdev.name) >
          0) {
        return absl::StrCat("an address of its interface ", netdev.name);
      }
    }
  }
  return "";
}

// What `address` is of the device; empty where that cannot be told.
std::string Place(const AddressChoice& choice, const Machine& machine,
                  const rdma::SocketAddress& address) {
  const auto device = std::find_if(
      machine.devices.begin(), machine.devices.end(),
      [&](const Device& each) { return each.name == *choice.device; });
  if (device == machine.devices.end()) return "";
  const std::string place = FindAmongGids(*device, address);
  return place.empty() ? FindAmongNetdevs(*device, machine, HostOf(address))
                       : place;
}

std::string ReasonToConnect(const AddressChoice& choice,
                            const Machine& machine) {
  const std::string host = HostOf(choice.address);
  const std::string place =
      choice.source.has_value() ? Place(choice, machine, *choice.source) : "";
  if (place.empty()) {
    return absl::StrCat("rdma_cm says that the route to ", host,
                        " leaves by it");
  }
  return absl::StrCat("the route to ", host, " starts at ",
                      HostOf(*choice.source), ", ", place);
}

std::string ReasonToListen(const AddressChoice& choice,
                           const Machine& machine) {
  const std::string host = HostOf(choice.address);
  if (choice.address.is_any()) {
    return absl::StrCat(host,
                        " is every address of this host, and this is the first "
                        "device with an active port");
  }
  const std::string place = Place(choice, machine, choice.address);
  if (place.empty()) {
    return absl::StrCat("rdma_cm says that ", host, " is its address");
  }
  return absl::StrCat(host, " is ", place);
}

}  // namespace

std::string HostOf(const rdma::SocketAddress& address) {
  std::string text = address.ToString();
  text.resize(text.rfind(':'));
  if (text.front() == '[') text = text.substr(1, text.size() - 2);
  return text;
}

std::string ReasonOf(const AddressChoice& choice, const Machine& machine) {
  if (!choice.device.ok()) {
    return std::string(choice.device.status().message());
  }
  if (choice.is_software) {
    return absl::StrCat(HostOf(choice.address),
                        " is an address of this host, whose processes the "
                        "software device connects");
  }
  return choice.use == rdma::AddressUse::kConnect
             ? ReasonToConnect(choice, machine)
             : ReasonToListen(choice, machine);
}

}  // namespace rdma_info
