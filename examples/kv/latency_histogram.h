// Durations in buckets of 1.6% width, for percentiles of any number of calls in
// 30 KiB of memory.
//
//   kv::LatencyHistogram latencies;
//   latencies.Add(absl::Now() - start);
//   absl::Duration p99 = latencies.Percentile(0.99);
//
// Thread rule: one thread at a time; give each thread its own and Merge them.
#ifndef VERBENA_EXAMPLES_KV_LATENCY_HISTOGRAM_H_
#define VERBENA_EXAMPLES_KV_LATENCY_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace kv {

class LatencyHistogram {
 public:
  // Negative durations count as 0; resolution 1 ns, no upper limit that
  // matters.
  void Add(absl::Duration latency);
  void Merge(const LatencyHistogram& other);

  uint64_t count() const { return count_; }

  // The latency that `fraction` (0 to 1) of all calls did not exceed, to 1.6%;
  // zero where there were none.
  absl::Duration Percentile(double fraction) const;

 private:
  // Values below 2^6 have a bucket each; above, every power of two has 2^6.
  static constexpr int kSubBits = 6;
  static constexpr size_t kSubBuckets = size_t{1} << kSubBits;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) * kSubBuckets;

  static size_t BucketOf(uint64_t ns);
  // The middle of a bucket.
  static uint64_t ValueOf(size_t bucket);

  std::array<uint64_t, kBuckets> counts_ = {};
  uint64_t count_ = 0;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_LATENCY_HISTOGRAM_H_
