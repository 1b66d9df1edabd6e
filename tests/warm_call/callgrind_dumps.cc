#include "tests/warm_call/callgrind_dumps.h"

#include <filesystem>
#include <fstream>
#include <string_view>

#include "absl/strings/numbers.h"

namespace warm_call {
namespace {

// What follows `label` where the line begins with it.
bool Take(const std::string& line, std::string_view label, std::string* rest) {
  if (!line.starts_with(label)) return false;
  *rest = line.substr(label.size());
  return true;
}

}  // namespace

std::map<std::string, int64_t> ReadCallgrindDumps(
    const std::string& directory) {
  std::map<std::string, int64_t> dumps;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path());
    std::string name, sum;
    for (std::string line; std::getline(file, line);) {
      Take(line, "desc: Trigger: Client Request: ", &name);
      Take(line, "totals: ", &sum);
    }
    int64_t instructions = 0;
    if (!name.empty() && absl::SimpleAtoi(sum, &instructions)) {
      dumps[name] = instructions;
    }
  }
  return dumps;
}

}  // namespace warm_call
