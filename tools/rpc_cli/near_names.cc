#include "tools/rpc_cli/near_names.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rpc_cli {
namespace {

constexpr size_t kMostNear = 5;
// So many are listed in an error where none is near.
constexpr size_t kFew = 8;

std::string_view LastPart(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

// How many letters are to be added, dropped, changed, or swapped with the next
// one (optimal string alignment).
size_t Distance(std::string_view a, std::string_view b) {
  // Row i: from i letters of `a` to each number of letters of `b`.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  std::vector<size_t> before = row;  // row i - 1; of no use to the first
  for (size_t i = 1; i <= a.size(); ++i) {
    std::vector<size_t> next(b.size() + 1, i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      next[j] = std::min({change, row[j] + 1, next[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before = std::exchange(row, std::move(next));
  }
  return row.back();
}

}  // namespace

std::vector<std::string> NearNames(const std::string& name,
                                   const std::vector<std::string>& known) {
  const std::string wanted = absl::AsciiStrToLower(name);
  const size_t far = std::max<size_t>(1, LastPart(wanted).size() / 3);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : known) {
    const std::string lower = absl::AsciiStrToLower(candidate);
    const size_t distance = std::min(
        Distance(wanted, lower), Distance(LastPart(wanted), LastPart(lower)));
    if (distance <= far) near.emplace_back(distance, candidate);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > kMostNear) near.resize(kMostNear);
  std::vector<std::string> names;
  names.reserve(near.size());
  for (auto& [distance, candidate] : near) names.push_back(candidate);
  return names;
}

std::string Suggestion(const std::string& name,
                       const std::vector<std::string>& known) {
  const std::vector<std::string> near = NearNames(name, known);
  if (!near.empty())
    return absl::StrCat("; near it: ", absl::StrJoin(near, ", "));
  if (known.empty()) return "; there is none at all";
  if (known.size() <= kFew) {
    return absl::StrCat("; there is: ", absl::StrJoin(known, ", "));
  }
  return "; list and describe show what there is";
}

}  // namespace rpc_cli
