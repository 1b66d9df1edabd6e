#include "rdma_transport/software/shm/listener_names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rdma::soft {
namespace {

constexpr char kPrefix[] = "verbena/soft0/";

// The ephemeral range of Linux.
constexpr uint32_t kFirstPort = 32768;
constexpr uint32_t kLastPort = 60999;
constexpr int kPortTries = 256;

constexpr unsigned long kAcceptsConnections = 0x10000;  // of /proc/net/unix

// An IPv4 address within IPv6 is that IPv4 address.
SocketAddress Canonical(const SocketAddress& address) {
  if (address.family() != AF_INET6) return address;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return address;
  SocketAddress mapped;
  auto& v4 = reinterpret_cast<sockaddr_in&>(mapped.storage);
  v4.sin_family = AF_INET;
  std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, 4);
  mapped.set_port(address.port());
  return mapped;
}

SocketAddress Wildcard(int family, uint16_t port) {
  return *SocketAddress::FromNumeric(family == AF_INET6 ? "::" : "0.0.0.0",
                                     port);
}

struct SocketName {
  sockaddr_un address = {};
  socklen_t length = 0;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&address);
  }
};

SocketName NameOf(const SocketAddress& address) {
  const std::string text = absl::StrCat(kPrefix, address.ToString());
  SocketName name;
  name.address.sun_family = AF_UNIX;
  // An abstract name: a zero byte, then the text without one at its end.
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

// The addresses of all listeners of this device in the network namespace.
std::vector<std::string> ListListeners() {
  std::vector<std::string> listeners;
  std::ifstream table("/proc/net/unix");
  const std::string prefix = absl::StrCat("@", kPrefix);
  for (std::string line; std::getline(table, line);) {
    // Num RefCount Protocol Flags Type St Inode Path
    const std::vector<std::string> fields =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() != 8) continue;
    const unsigned long flags = std::strtoul(fields[3].c_str(), nullptr, 16);
    absl::string_view path = fields[7];
    if ((flags & kAcceptsConnections) == 0) continue;
    if (absl::ConsumePrefix(&path, prefix)) listeners.emplace_back(path);
  }
  return listeners;
}

UniqueFd MakeSocket() {
  return UniqueFd(
      socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// "process 1234 (kv_server)", or "" where that cannot be known.
std::string OwnerOf(const SocketAddress& address) {
  UniqueFd socket = MakeSocket();
  const SocketName name = NameOf(address);
  ucred owner = {};
  socklen_t length = sizeof(owner);
  if (!socket || connect(socket.get(), name.get(), name.length) != 0 ||
      getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &owner, &length) != 0 ||
      owner.pid <= 0) {
    return "";
  }
  std::string command;
  std::ifstream file(absl::StrCat("/proc/", owner.pid, "/comm"));
  std::getline(file, command);
  return absl::StrCat("process ", owner.pid, " (", command, ")");
}

absl::Status InUse(const SocketAddress& address, const SocketAddress& taken) {
  const std::string owner = OwnerOf(taken);
  return absl::AlreadyExistsError(
      absl::StrCat(address.ToString(), " is in use",
                   owner.empty() ? std::string() : absl::StrCat(" by ", owner),
                   ", listening on ", taken.ToString(),
                   ": stop it, or choose another port"));
}

// Whether a listener on `a` and one on `b` would take each other's connections.
bool Overlap(const SocketAddress& a, const SocketAddress& b) {
  if (a.port() != b.port()) return false;
  if (a.is_any() || b.is_any()) {
    // [::] takes IPv4 too; 0.0.0.0 takes nothing of IPv6.
    const auto covers = [](const SocketAddress& wide, const SocketAddress& x) {
      return wide.is_any() &&
             (wide.family() == AF_INET6 || x.family() == AF_INET);
    };
    return covers(a, b) || covers(b, a);
  }
  return a.ToString() == b.ToString();
}

std::optional<SocketAddress> ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint32_t port;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) {
    return std::nullopt;
  }
  absl::string_view host = absl::string_view(text).substr(0, colon);
  absl::ConsumePrefix(&host, "[");
  absl::ConsumeSuffix(&host, "]");
  const auto address = SocketAddress::FromNumeric(
      std::string_view(host.data(), host.size()), static_cast<uint16_t>(port));
  if (!address.ok()) return std::nullopt;
  return *address;
}

// A listener that overlaps with `address`, other than the one on it.
std::optional<SocketAddress> FindConflict(const SocketAddress& address) {
  for (const std::string& text : ListListeners()) {
    const std::optional<SocketAddress> other = ParseAddress(text);
    if (other && other->ToString() != address.ToString() &&
        Overlap(address, *other)) {
      return other;
    }
  }
  return std::nullopt;
}

absl::StatusOr<UniqueFd> BindOne(const SocketAddress& address, int backlog) {
  UniqueFd socket = MakeSocket();
  if (!socket) {
    return absl::ResourceExhaustedError(
        absl::StrCat("socket: ", std::strerror(errno)));
  }
  const SocketName name = NameOf(address);
  if (bind(socket.get(), name.get(), name.length) != 0) {
    if (errno == EADDRINUSE) return InUse(address, address);
    return absl::InternalError(absl::StrCat("bind: ", std::strerror(errno)));
  }
  if (listen(socket.get(), backlog) != 0) {
    return absl::InternalError(absl::StrCat("listen: ", std::strerror(errno)));
  }
  // Bound first, looked for others afterwards: of two that overlap at least one
  // sees the other.
  if (const auto conflict = FindConflict(address)) {
    return InUse(address, *conflict);
  }
  return socket;
}

}  // namespace

absl::StatusOr<BoundSocket> BindListener(
    const SocketAddress& address, int backlog,
    const std::function<uint32_t()>& random) {
  SocketAddress wanted = Canonical(address);
  if (!IsAddressOfThisHost(wanted)) {
    return absl::InvalidArgumentError(
        absl::StrCat(address.ToString(), " is no address of this host"));
  }
  if (wanted.port() != 0) {
    absl::StatusOr<UniqueFd> socket = BindOne(wanted, backlog);
    if (!socket.ok()) return socket.status();
    return BoundSocket{*std::move(socket), wanted};
  }
  for (int i = 0; i < kPortTries; ++i) {
    wanted.set_port(EphemeralPort(random()));
    absl::StatusOr<UniqueFd> socket = BindOne(wanted, backlog);
    if (socket.ok()) return BoundSocket{*std::move(socket), wanted};
    if (!absl::IsAlreadyExists(socket.status())) return socket.status();
  }
  return absl::ResourceExhaustedError("no free port was found");
}

ConnectResult ConnectToListener(const SocketAddress& address,
                                UniqueFd* socket) {
  const SocketAddress exact = Canonical(address);
  std::vector<SocketAddress> candidates = {exact};
  if (exact.is_any()) {
    // Connecting to a wildcard means this host, as with TCP.
    candidates.push_back(*SocketAddress::FromNumeric(
        exact.family() == AF_INET6 ? "::1" : "127.0.0.1", exact.port()));
  }
  if (exact.family() == AF_INET) {
    candidates.push_back(Wildcard(AF_INET, exact.port()));
  }
  candidates.push_back(Wildcard(AF_INET6, exact.port()));

  for (const SocketAddress& candidate : candidates) {
    *socket = MakeSocket();
    if (!*socket) return ConnectResult::kFailed;
    const SocketName name = NameOf(candidate);
    if (connect(socket->get(), name.get(), name.length) == 0) {
      return ConnectResult::kConnected;
    }
    if (errno == EAGAIN) return ConnectResult::kBusy;
    if (errno != ECONNREFUSED) return ConnectResult::kFailed;
  }
  return ConnectResult::kNobody;
}

bool IsAddressOfThisHost(const SocketAddress& address) {
  if (address.is_any()) return true;
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(address.get());
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
  if (address.family() == AF_INET &&
      (ntohl(v4->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET) {
    return true;
  }
  if (address.family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)) {
    return true;
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list,
                                                               &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const sockaddr* const own = entry->ifa_addr;
    if (own == nullptr || own->sa_family != address.family()) continue;
    if (own->sa_family == AF_INET &&
        reinterpret_cast<const sockaddr_in*>(own)->sin_addr.s_addr ==
            v4->sin_addr.s_addr) {
      return true;
    }
    if (own->sa_family == AF_INET6 &&
        std::memcmp(&reinterpret_cast<const sockaddr_in6*>(own)->sin6_addr,
                    &v6->sin6_addr, sizeof(in6_addr)) == 0) {
      return true;
    }
  }
  return false;
}

uint16_t EphemeralPort(uint32_t random) {
  return static_cast<uint16_t>(kFirstPort +
                               random % (kLastPort - kFirstPort + 1));
}

}  // namespace rdma::soft
