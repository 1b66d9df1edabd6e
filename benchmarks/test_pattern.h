// Payloads with contents that are worth checking: bytes that do not repeat, and
// a checksum to compare them by.
//
//   std::string payload = benchmarks::TestPattern(1 << 20, /*seed=*/7);
//   uint64_t expected = benchmarks::Checksum(payload);
//
// Pure functions.
#ifndef VERBENA_BENCHMARKS_TEST_PATTERN_H_
#define VERBENA_BENCHMARKS_TEST_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rpc/buffer.h"

namespace benchmarks {

// Writes `size` bytes that look random; each seed gives others.
void FillTestPattern(char* data, size_t size, uint64_t seed);
std::string TestPattern(size_t size, uint64_t seed);

// Tells apart contents, lengths, and orders of equal parts. Of a chain: of its
// bytes, however they are split. About 10 GB/s; no protection against intent.
uint64_t Checksum(std::string_view bytes);
uint64_t Checksum(const rpc::BufferChain& chain);

// Whether a chain's bytes are `expected`.
bool Equals(const rpc::BufferChain& chain, std::string_view expected);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_TEST_PATTERN_H_
