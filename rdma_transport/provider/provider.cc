#include "rdma_transport/provider/provider.h"

#include <arpa/inet.h>

#include <cstring>

#include "absl/strings/str_cat.h"

namespace rdma {
namespace {

const sockaddr_in& V4(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in&>(address.storage);
}

const sockaddr_in6& V6(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr_in6&>(address.storage);
}

}  // namespace

uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? V6(*this).sin6_port : V4(*this).sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  if (family() == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
  }
}

bool SocketAddress::is_any() const {
  if (family() == AF_INET6)
    return IN6_IS_ADDR_UNSPECIFIED(&V6(*this).sin6_addr);
  return family() == AF_INET && V4(*this).sin_addr.s_addr == htonl(INADDR_ANY);
}

std::string SocketAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  switch (family()) {
    case AF_INET:
      inet_ntop(AF_INET, &V4(*this).sin_addr, text, sizeof(text));
      return absl::StrCat(text, ":", port());
    case AF_INET6:
      inet_ntop(AF_INET6, &V6(*this).sin6_addr, text, sizeof(text));
      return absl::StrCat("[", text, "]:", port());
    default:
      return "(no address)";
  }
}

absl::StatusOr<SocketAddress> SocketAddress::FromNumeric(std::string_view host,
                                                         uint16_t port) {
  SocketAddress address;
  const std::string text(host);
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return address;
  }
  std::memset(&address.storage, 0, sizeof(address.storage));
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    return address;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is no numeric address: write it as 127.0.0.1 or as ::1, "
                   "without brackets"));
}

}  // namespace rdma
