#include "benchmarks/cpu_pinning.h"

#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace benchmarks {

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

absl::Status PinTo(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) {
    return absl::InvalidArgumentError(absl::StrCat(
        "CPU ", cpu, " cannot be: numbers go from 0 to ", CPU_SETSIZE - 1));
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "sched_setaffinity to CPU ", cpu, ": ", std::strerror(errno),
      "; this process may use CPUs ", absl::StrJoin(AllowedCpus(), ",")));
}

absl::StatusOr<std::vector<int>> CpusForTwo(const std::string& flag) {
  if (flag == "none") return std::vector<int>();
  if (flag.empty()) {
    const std::vector<int> allowed = AllowedCpus();
    if (allowed.size() >= 2) return std::vector<int>{allowed[0], allowed[1]};
    std::fprintf(stderr,
                 "the processes are not bound to CPUs of their own: there is "
                 "one CPU for all; expect long tails\n");
    return std::vector<int>();
  }
  std::vector<int> cpus;
  for (const auto word : absl::StrSplit(flag, ',')) {
    int cpu = 0;
    if (absl::SimpleAtoi(word, &cpu)) cpus.push_back(cpu);
  }
  if (cpus.size() == 2) return cpus;
  return absl::InvalidArgumentError(
      absl::StrCat("--cpus=", flag, ": takes CLIENT,SERVER, such as 0,1"));
}

}  // namespace benchmarks
