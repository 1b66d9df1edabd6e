// Which CPU a benchmark's processes run on. Two sides on one CPU, or threads
// that wander, make tails of milliseconds: pin them apart.
//
//   std::vector<int> cpus = benchmarks::AllowedCpus();
//   absl::Status status = benchmarks::PinTo(cpus[0]);
#ifndef VERBENA_BENCHMARKS_CPU_PINNING_H_
#define VERBENA_BENCHMARKS_CPU_PINNING_H_

#include <vector>

#include "absl/status/status.h"

namespace benchmarks {

// The CPUs that the calling thread may run on, in ascending order.
std::vector<int> AllowedCpus();

// Binds the calling thread, and every thread and process that it starts from
// now on, to one CPU. INVALID_ARGUMENT: no such CPU, or not one of ours; names
// those that there are.
absl::Status PinTo(int cpu);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_CPU_PINNING_H_
