#include "tools/rdma_info/sysfs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace rdma_info {
namespace {

// Numbers before names, so that ports and GIDs come in their order.
bool InOrder(const std::string& a, const std::string& b) {
  uint64_t a_number = 0;
  uint64_t b_number = 0;
  const bool a_is_number = absl::SimpleAtoi(a, &a_number);
  const bool b_is_number = absl::SimpleAtoi(b, &b_number);
  if (a_is_number && b_is_number) return a_number < b_number;
  return a_is_number != b_is_number ? a_is_number : a < b;
}

}  // namespace

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  absl::StripAsciiWhitespace(&line);
  return line;
}

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

uint64_t ReadNumber(const std::string& path) {
  return std::strtoull(ReadLine(path).c_str(), nullptr, 0);
}

Enumerated ReadEnumerated(const std::string& path) {
  const std::string line = ReadLine(path);
  const size_t colon = line.find(':');
  if (colon == std::string::npos) return {.number = 0, .word = line};
  std::string word = line.substr(colon + 1);
  absl::StripAsciiWhitespace(&word);
  return {.number = std::atoi(line.c_str()), .word = word};
}

std::vector<std::string> ListNames(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end(), InOrder);
  return names;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string LinkedName(const std::string& path) {
  std::error_code error;
  return std::filesystem::read_symlink(path, error).filename().string();
}

Access AccessTo(const std::string& path) {
  if (access(path.c_str(), R_OK | W_OK) == 0) return Access::kGranted;
  return errno == ENOENT || errno == ENOTDIR ? Access::kMissing
                                             : Access::kDenied;
}

}  // namespace rdma_info
