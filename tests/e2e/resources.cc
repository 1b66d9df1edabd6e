#include "tests/e2e/resources.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace e2e {
namespace {

// The sizes of all mappings of memory files, from lines such as
// "7f0000000000-7f0000010000 rw-s 00000000 00:01 1234 /memfd:arena (deleted)".
uint64_t SharedBytes() {
  uint64_t sum = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!absl::StrContains(line, "/memfd:")) continue;
    const size_t dash = line.find('-');
    uint64_t begin = 0;
    uint64_t end = 0;
    if (absl::SimpleHexAtoi(line.substr(0, dash), &begin) &&
        absl::SimpleHexAtoi(line.substr(dash + 1, line.find(' ') - dash - 1),
                            &end)) {
      sum += end - begin;
    }
  }
  return sum;
}

std::string LineOf(const std::filesystem::path& file,
                   const std::string& beginning) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (absl::StartsWith(line, beginning)) {
      return line.substr(beginning.size());
    }
  }
  return "";
}

int OpenDescriptors() {
  // The iterator has one of its own while it looks.
  std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<int>(std::distance(begin(entries), end(entries))) - 1;
}

}  // namespace

Resources Resources::Now() {
  Resources now;
  now.descriptors = OpenDescriptors();
  now.shared_bytes = SharedBytes();
  std::error_code ignored;  // without /dev/shm there is nothing in it
  for (const auto& entry :
       std::filesystem::directory_iterator("/dev/shm", ignored)) {
    now.dev_shm.insert(entry.path().filename());
  }
  return now;
}

std::ostream& operator<<(std::ostream& out, const Resources& resources) {
  out << resources.descriptors << " descriptors, " << resources.shared_bytes
      << " bytes of shared memory mapped, in /dev/shm:";
  for (const std::string& name : resources.dev_shm) out << " " << name;
  return out << " (" << resources.dev_shm.size() << ")";
}

int64_t SleepsOf(const char* threads) {
  int64_t sum = 0;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    const std::filesystem::path file = task.path() / "status";
    int64_t sleeps = 0;
    if (LineOf(file, "Name:\t") == threads &&
        absl::SimpleAtoi(LineOf(file, "voluntary_ctxt_switches:\t"), &sleeps)) {
      sum += sleeps;
    }
  }
  return sum;
}

bool Eventually(const std::function<bool()>& condition,
                absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace e2e
