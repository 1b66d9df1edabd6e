// Flags that are lists of sizes: "64,64K,1M".
#ifndef VERBENA_BENCHMARKS_SIZE_LIST_H_
#define VERBENA_BENCHMARKS_SIZE_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace benchmarks {

// K, M and G are powers of 1024. INVALID_ARGUMENT names the flag.
absl::StatusOr<std::vector<uint64_t>> ParseSizes(const std::string& flag,
                                                 const std::string& text);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_SIZE_LIST_H_
