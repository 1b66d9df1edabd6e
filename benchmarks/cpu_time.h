// CPU time of processes, this one's and its children's.
//
//   const int64_t begin_ns = benchmarks::ProcessCpuTimeNs(server.pid());
//
// Thread-safe.
#ifndef VERBENA_BENCHMARKS_CPU_TIME_H_
#define VERBENA_BENCHMARKS_CPU_TIME_H_

#include <sys/types.h>

#include <cstdint>

namespace benchmarks {

// Of all threads of the process, in user and kernel mode, so far; 0: this
// process. -1 where it cannot be read.
int64_t ProcessCpuTimeNs(pid_t pid);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_CPU_TIME_H_
