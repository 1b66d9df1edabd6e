#include "benchmarks/size_list.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace benchmarks {
namespace {

// "64", "64K", "1M", "2G".
bool ParseBytes(std::string word, uint64_t* bytes) {
  uint64_t unit = 1;
  const size_t suffix =
      word.empty() ? std::string::npos : std::string("KMG").find(word.back());
  if (suffix != std::string::npos) {
    unit = uint64_t{1} << (10 * (suffix + 1));
    word.pop_back();
  }
  uint64_t count = 0;
  if (!absl::SimpleAtoi(word, &count) || count > (uint64_t{1} << 40) / unit) {
    return false;
  }
  *bytes = count * unit;
  return true;
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> ParseSizes(const std::string& flag,
                                                 const std::string& text) {
  std::vector<uint64_t> sizes;
  for (const auto word : absl::StrSplit(text, ',')) {
    uint64_t bytes = 0;
    if (!ParseBytes(std::string(word), &bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", flag, "=", text, ": takes sizes such as 64, 64K, 1M or 2G"));
    }
    sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace benchmarks
