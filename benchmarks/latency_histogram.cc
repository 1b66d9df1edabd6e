#include "benchmarks/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace benchmarks {

size_t LatencyHistogram::BucketOf(uint64_t ns) {
  if (ns < kSubBuckets) return static_cast<size_t>(ns);
  // In binary, ns is 1xxxxxxx...: its exponent, then its next kSubBits bits.
  // The leading 1 adds kSubBuckets, which is where the first octave starts.
  const int shift = std::bit_width(ns) - 1 - kSubBits;
  return static_cast<size_t>(shift) * kSubBuckets +
         static_cast<size_t>(ns >> shift);
}

uint64_t LatencyHistogram::ValueOf(size_t bucket) {
  if (bucket < 2 * kSubBuckets) return bucket;
  const int shift = static_cast<int>(bucket / kSubBuckets) - 1;
  const uint64_t low = uint64_t{kSubBuckets + bucket % kSubBuckets} << shift;
  return low + (uint64_t{1} << shift) / 2;
}

uint64_t LatencyHistogram::count() const {
  uint64_t sum = 0;
  for (const auto& count : counts_) {
    sum += count.load(std::memory_order_relaxed);
  }
  return sum;
}

uint64_t LatencyHistogram::PercentileNs(double fraction) const {
  const uint64_t total = count();
  if (total == 0) return 0;
  const double rank = std::ceil(fraction * static_cast<double>(total));
  const uint64_t wanted =
      std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, total);
  uint64_t seen = 0;
  size_t bucket = 0;
  while (true) {
    seen += counts_[bucket].load(std::memory_order_relaxed);
    if (seen >= wanted) return ValueOf(bucket);
    ++bucket;
  }
}

}  // namespace benchmarks
