#include "benchmarks/cpu_pinning.h"

#include <sched.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

}  // namespace benchmarks
