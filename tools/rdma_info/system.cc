#include "tools/rdma_info/system.h"

#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/rdma_info/sysfs.h"

namespace rdma_info {
namespace {

// Where the controllers of version 1 of cgroups are, and the only one of 2.
constexpr char kCgroups[] = "/fs/cgroup";
constexpr char kAllUserIds[] = "4294967295";

std::optional<uint64_t> LimitOf(rlim_t limit) {
  if (limit == RLIM_INFINITY) return std::nullopt;
  return limit;
}

uint64_t MemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return 0;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
}

ForkSafety GetForkSafety() {
  switch (ibv_is_fork_initialized()) {
    case IBV_FORK_UNNEEDED:
      return ForkSafety::kUnneeded;
    case IBV_FORK_ENABLED:
      return ForkSafety::kEnabled;
    case IBV_FORK_DISABLED:
      break;
  }
  return ForkSafety::kFailed;
}

// The smaller one; nothing is no limit.
void Tighten(std::optional<uint64_t>& limit, std::optional<uint64_t> other) {
  if (!other.has_value()) return;
  limit = std::min(limit.value_or(*other), *other);
}

CgroupLimit& FindOrAdd(std::vector<CgroupLimit>& limits,
                       const std::string& device) {
  const auto found = std::find_if(
      limits.begin(), limits.end(),
      [&](const CgroupLimit& limit) { return limit.device == device; });
  if (found != limits.end()) return *found;
  limits.push_back({.device = device});
  return limits.back();
}

// "mlx5_0 hca_handle=2 hca_object=max", one line for each device.
void ApplyLimits(const std::string& file, std::vector<CgroupLimit>& limits) {
  for (const std::string& line : ReadLines(file)) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipWhitespace());
    for (size_t i = 1; i < words.size(); ++i) {
      const std::vector<std::string> parts = absl::StrSplit(words[i], '=');
      uint64_t value = 0;
      if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value)) continue;
      CgroupLimit& limit = FindOrAdd(limits, words[0]);
      if (parts[0] == "hca_handle") Tighten(limit.contexts, value);
      if (parts[0] == "hca_object") Tighten(limit.objects, value);
    }
  }
}

}  // namespace

bool IgnoresMemlock(const Roots& roots) {
  const std::vector<std::string> map = absl::StrSplit(
      ReadLine(roots.proc + "/self/uid_map"), ' ', absl::SkipWhitespace());
  const std::vector<std::string> everybody = {"0", "0", kAllUserIds};
  if (map != everybody) return false;
  for (const std::string& line : ReadLines(roots.proc + "/self/status")) {
    absl::string_view digits = line;
    if (!absl::ConsumePrefix(&digits, "CapEff:")) continue;
    const uint64_t capabilities =
        std::strtoull(std::string(digits).c_str(), nullptr, 16);
    return (capabilities >> CAP_IPC_LOCK & 1) != 0;
  }
  return false;
}

std::vector<CgroupLimit> CollectCgroupLimits(const Roots& roots) {
  std::vector<CgroupLimit> limits;
  // "0::/user.slice", or of version 1 "4:rdma:/batch".
  for (const std::string& line : ReadLines(roots.proc + "/self/cgroup")) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const bool is_v2 = parts[1].empty();
    if (!is_v2 && parts[1] != "rdma") continue;
    const std::string top = roots.sys + kCgroups + (is_v2 ? "" : "/rdma");
    for (std::string group = parts[2];;) {
      ApplyLimits(top + group + "/rdma.max", limits);
      const size_t slash = group.rfind('/');
      if (group.empty() || slash == std::string::npos) break;
      group.resize(slash);
    }
  }
  return limits;
}

System CollectSystem(const Roots& roots) {
  System system;
  utsname names;
  if (uname(&names) == 0) system.kernel = names.release;
  system.memory_bytes = MemoryBytes();
  rlimit memlock = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  getrlimit(RLIMIT_MEMLOCK, &memlock);
  system.memlock_bytes = LimitOf(memlock.rlim_cur);
  system.memlock_hard_bytes = LimitOf(memlock.rlim_max);
  system.ignores_memlock = IgnoresMemlock(roots);
  system.has_uverbs = Exists(roots.sys + "/class/infiniband_verbs");
  system.has_rdma_ucm = Exists(roots.sys + "/class/misc/rdma_cm");
  system.rdma_cm = AccessTo(roots.dev + "/infiniband/rdma_cm");
  system.fork = GetForkSafety();
  system.huge_pages_fork_safe = std::getenv("RDMAV_HUGEPAGES_SAFE") != nullptr;
  system.huge_pages = ReadNumber(roots.proc + "/sys/vm/nr_hugepages");
  system.cgroup_limits = CollectCgroupLimits(roots);
  return system;
}

}  // namespace rdma_info
