// Multiples of pages, cache lines and the like.
#ifndef VERBENA_MEMORY_ROUND_UP_H_
#define VERBENA_MEMORY_ROUND_UP_H_

#include <cstddef>

namespace memory {

// The least multiple of `unit`, which is not 0, that is not below `bytes`.
// REQUIRES: it does not overflow.
constexpr size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace memory

#endif  // VERBENA_MEMORY_ROUND_UP_H_
