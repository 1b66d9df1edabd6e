// Latencies in buckets of at most 0.8% width, for percentiles of any number of
// calls in fixed memory.
//
//   auto latencies = std::make_unique<benchmarks::LatencyHistogram>();
//   latencies->Add(end_ns - start_ns);
//   uint64_t p99_ns = latencies->PercentileNs(0.99);
//
// The buckets are linear within each power of two (as in HdrHistogram), so that
// adding is a shift and an increment. An object is 60 KiB: keep it off stacks.
//
// Thread rule: Add from any thread; the rest while nobody adds.
#ifndef VERBENA_BENCHMARKS_LATENCY_HISTOGRAM_H_
#define VERBENA_BENCHMARKS_LATENCY_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace benchmarks {

class LatencyHistogram {
 public:
  void Add(uint64_t ns) {
    counts_[BucketOf(ns)].fetch_add(1, std::memory_order_relaxed);
  }

  uint64_t count() const;

  // The latency that `fraction` (0 to 1) of all calls did not exceed, to 0.4%;
  // 0 where there were none.
  uint64_t PercentileNs(double fraction) const;

 private:
  // Values below 2^7 have a bucket each; above, every power of two has 2^7.
  static constexpr int kSubBits = 7;
  static constexpr size_t kSubBuckets = size_t{1} << kSubBits;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) * kSubBuckets;

  static size_t BucketOf(uint64_t ns);
  // The middle of a bucket.
  static uint64_t ValueOf(size_t bucket);

  std::array<std::atomic<uint64_t>, kBuckets> counts_ = {};
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_LATENCY_HISTOGRAM_H_
