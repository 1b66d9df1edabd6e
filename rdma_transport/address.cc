#include "rdma_transport/address.h"

#include <netdb.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace rdma {
namespace {

absl::Status BadAddress(std::string_view address, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "bad address '", std::string(address), "': ", std::string(what),
      "; an address is rdma://HOST:PORT, such as rdma://127.0.0.1:50051, "
      "rdma://[::1]:50051 or rdma://storage1:50051"));
}

}  // namespace

absl::StatusOr<HostPort> ParseAddress(std::string_view address) {
  std::string_view rest = address;
  const size_t scheme = rest.find("://");
  if (scheme != std::string_view::npos) {
    if (rest.substr(0, scheme) != "rdma") {
      return BadAddress(address, "the scheme is not rdma");
    }
    rest.remove_prefix(scheme + 3);
  }
  const size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) {
    return BadAddress(address, "no port");
  }
  std::string_view host = rest.substr(0, colon);
  const std::string_view port_text = rest.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') return BadAddress(address, "no closing bracket");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return BadAddress(address, "an IPv6 address goes in brackets");
  }
  if (host.empty()) return BadAddress(address, "no host");
  uint32_t port = 0;
  const bool digits = !port_text.empty() &&
                      std::all_of(port_text.begin(), port_text.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || !absl::SimpleAtoi(std::string(port_text), &port) ||
      port > 65535) {
    return BadAddress(address, "the port is not a number from 0 to 65535");
  }
  return HostPort{std::string(host), static_cast<uint16_t>(port)};
}

absl::StatusOr<std::vector<SocketAddress>> ResolveAddress(
    const HostPort& host_port) {
  const absl::StatusOr<SocketAddress> numeric =
      SocketAddress::FromNumeric(host_port.host, host_port.port);
  if (numeric.ok()) return std::vector<SocketAddress>{*numeric};

  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host_port.host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot resolve '", host_port.host, "': ", gai_strerror(error)));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (info->ai_family != AF_INET && info->ai_family != AF_INET6) continue;
    SocketAddress address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.set_port(host_port.port);
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  std::stable_sort(addresses.begin(), addresses.end(),
                   [](const SocketAddress& a, const SocketAddress& b) {
                     return a.family() == AF_INET && b.family() == AF_INET6;
                   });
  if (addresses.empty()) {
    return absl::UnavailableError(
        absl::StrCat("'", host_port.host, "' has no IPv4 or IPv6 address"));
  }
  return addresses;
}

}  // namespace rdma
