// Which CPU a benchmark's processes run on. Two sides on one CPU, or threads
// that wander, make tails of milliseconds: pin them apart.
//
//   std::vector<int> cpus = benchmarks::AllowedCpus();
//   absl::Status status = benchmarks::PinTo(cpus[0]);
#ifndef VERBENA_BENCHMARKS_CPU_PINNING_H_
#define VERBENA_BENCHMARKS_CPU_PINNING_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace benchmarks {

// The CPUs that the calling thread may run on, in ascending order.
std::vector<int> AllowedCpus();

// Binds the calling thread, and every thread and process that it starts from
// now on, to one CPU. INVALID_ARGUMENT: no such CPU, or not one of ours; names
// those that there are.
absl::Status PinTo(int cpu);

// The CPUs of a client and a server, or none, as the flag --cpus says: "0,1",
// "none", or "" for the first two allowed ones, which says so on stderr where
// there is but one. INVALID_ARGUMENT: something else.
absl::StatusOr<std::vector<int>> CpusForTwo(const std::string& flag);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_CPU_PINNING_H_
