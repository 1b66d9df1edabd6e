#include "tests/warm_call/callgrind_dumps.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace warm_call {
namespace {

// What follows `label` where the line begins with it.
bool Take(const std::string& line, std::string_view label, std::string* rest) {
  if (!line.starts_with(label)) return false;
  *rest = line.substr(label.size());
  return true;
}

// The number in the column of `sums` that `event` has in `events`; 0: none.
int64_t SumOf(std::string_view event, const std::string& events,
              const std::string& sums) {
  const std::vector<std::string> names = absl::StrSplit(events, ' ');
  const std::vector<std::string> numbers = absl::StrSplit(sums, ' ');
  const auto found = std::find(names.begin(), names.end(), event);
  const auto column = static_cast<size_t>(found - names.begin());
  int64_t sum = 0;
  if (column < numbers.size() && found != names.end()) {
    (void)absl::SimpleAtoi(numbers[column], &sum);
  }
  return sum;
}

}  // namespace

std::map<std::string, CallgrindCounts> ReadCallgrindDumps(
    const std::string& directory) {
  std::map<std::string, CallgrindCounts> dumps;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path());
    std::string name, events, sums;
    for (std::string line; std::getline(file, line);) {
      Take(line, "desc: Trigger: Client Request: ", &name);
      Take(line, "events: ", &events);
      Take(line, "totals: ", &sums);
    }
    if (!name.empty() && !sums.empty()) {
      dumps[name] = {.instructions = SumOf("Ir", events, sums),
                     .stores = SumOf("Dw", events, sums)};
    }
  }
  return dumps;
}

}  // namespace warm_call
