#include "rpc/routing/address_list.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rpc::routing {
namespace {

constexpr char kAfterScheme[] = "://";

// "rdma://", "host", ":1".
struct Parts {
  std::string scheme;
  std::string host;
  std::string port;
};

// None where the host is no name.
std::optional<Parts> SplitName(std::string_view address) {
  Parts parts;
  const size_t scheme_end = address.find(kAfterScheme);
  if (scheme_end != std::string_view::npos) {
    const size_t begin = scheme_end + sizeof(kAfterScheme) - 1;
    parts.scheme = address.substr(0, begin);
    address.remove_prefix(begin);
  }
  const size_t colon = address.find(':');  // an IPv6 address begins with [
  if (colon == std::string_view::npos) return std::nullopt;
  parts.host = address.substr(0, colon);
  parts.port = address.substr(colon);
  in_addr ipv4;
  const bool is_name = !parts.host.empty() && parts.host.front() != '[' &&
                       inet_pton(AF_INET, parts.host.c_str(), &ipv4) != 1;
  if (!is_name) return std::nullopt;
  return parts;
}

// As an address has it; empty: neither IPv4 nor IPv6.
std::string HostOf(const addrinfo& info) {
  char text[INET6_ADDRSTRLEN];
  if (info.ai_family == AF_INET) {
    const auto* const address =
        reinterpret_cast<const sockaddr_in*>(info.ai_addr);
    return inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
  }
  if (info.ai_family != AF_INET6) return "";
  const auto* const address =
      reinterpret_cast<const sockaddr_in6*>(info.ai_addr);
  return absl::StrCat(
      "[", inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof(text)), "]");
}

}  // namespace

bool IsByName(std::string_view address) {
  return SplitName(address).has_value();
}

absl::StatusOr<std::vector<std::string>> ResolveAddress(
    std::string_view address) {
  const std::optional<Parts> parts = SplitName(address);
  if (!parts.has_value()) return std::vector<std::string>{std::string(address)};
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(parts->host.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat("cannot resolve '", parts->host,
                                               "': ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list,
                                                             &freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    const std::string host = HostOf(*info);
    const std::string one = absl::StrCat(parts->scheme, host, parts->port);
    const bool is_new =
        std::find(addresses.begin(), addresses.end(), one) == addresses.end();
    if (!host.empty() && is_new) addresses.push_back(one);
  }
  std::stable_partition(
      addresses.begin(), addresses.end(),
      [](const std::string& one) { return !absl::StrContains(one, "["); });
  if (!addresses.empty()) return addresses;
  return absl::UnavailableError(
      absl::StrCat("'", parts->host, "' has no IPv4 or IPv6 address"));
}

std::vector<std::string> SplitAddresses(std::string_view address) {
  const std::string all(address);
  std::string scheme;
  absl::string_view rest = all;
  if (const size_t end = all.find(kAfterScheme); end != std::string::npos) {
    const size_t begin_of_rest = end + sizeof(kAfterScheme) - 1;
    scheme = all.substr(0, begin_of_rest);
    rest.remove_prefix(begin_of_rest);
    absl::ConsumePrefix(&rest, "/");
  }
  std::vector<std::string> addresses;
  for (const absl::string_view one : absl::StrSplit(rest, ',')) {
    const bool complete = absl::StrContains(one, kAfterScheme);
    addresses.push_back(absl::StrCat(complete ? "" : scheme, one));
  }
  return addresses;
}

}  // namespace rpc::routing
