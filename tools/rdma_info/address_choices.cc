#include "tools/rdma_info/address_choices.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma_info {
namespace {

// A UDP socket asks for some port to have a route; which one does not matter.
constexpr uint16_t kAnyPort = 9;

AddressChoice Ask(rdma::Provider* provider, bool is_software,
                  const rdma::SocketAddress& address, rdma::AddressUse use,
                  absl::Duration timeout) {
  AddressChoice choice;
  choice.address = address;
  choice.use = use;
  choice.is_software = is_software;
  choice.device = provider->DeviceFor(address, use, timeout);
  if (use == rdma::AddressUse::kConnect) {
    const auto source = LocalAddressTowards(address);
    if (source.ok()) choice.source = *source;
  }
  return choice;
}

}  // namespace

absl::StatusOr<rdma::SocketAddress> LocalAddressTowards(
    const rdma::SocketAddress& address) {
  rdma::SocketAddress peer = address;
  if (peer.port() == 0) peer.set_port(kAnyPort);
  const rdma::UniqueFd fd(
      socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
  rdma::SocketAddress local;
  socklen_t length = sizeof(local.storage);
  if (!fd || connect(fd.get(), peer.get(), peer.length()) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local.storage),
                  &length) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "no route to ", address.ToString(), ": ", strerror(errno)));
  }
  local.set_port(0);
  return local;
}

AddressReport CollectAddressChoices(const std::string& text,
                                    const rdma::HostPort& host_port,
                                    rdma::Provider* hardware,
                                    rdma::Provider* software,
                                    absl::Duration timeout) {
  AddressReport report = {.text = text};
  const auto addresses = rdma::ResolveAddress(host_port);
  report.resolved = addresses.status();
  if (!addresses.ok()) return report;
  for (const rdma::SocketAddress& address : *addresses) {
    for (const auto use :
         {rdma::AddressUse::kConnect, rdma::AddressUse::kListen}) {
      // Nobody is at 0.0.0.0; it is for listening.
      if (address.is_any() && use == rdma::AddressUse::kConnect) continue;
      report.choices.push_back(Ask(hardware, false, address, use, timeout));
      report.choices.push_back(Ask(software, true, address, use, timeout));
    }
  }
  return report;
}

}  // namespace rdma_info
