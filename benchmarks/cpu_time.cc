#include "benchmarks/cpu_time.h"

#include <time.h>

namespace benchmarks {

int64_t ProcessCpuTimeNs(pid_t pid) {
  // clock_getcpuclockid(3) takes 0 for the calling process.
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0) return -1;
  if (clock_gettime(clock, &time) != 0) return -1;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace benchmarks
