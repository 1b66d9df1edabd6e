#include "rpc/routing/address_list.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rpc::routing {
namespace {

constexpr char kAfterScheme[] = "://";

}  // namespace

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
