#include "examples/kv/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kv {

size_t LatencyHistogram::BucketOf(uint64_t ns) {
  if (ns < kSubBuckets) return ns;
  // ns = 1xxxxxx... in binary: its exponent, then its next kSubBits bits.
  const int shift = std::bit_width(ns) - 1 - kSubBits;
  return static_cast<size_t>(shift) * kSubBuckets + (ns >> shift);
}

uint64_t LatencyHistogram::ValueOf(size_t bucket) {
  if (bucket < 2 * kSubBuckets) return bucket;
  const int shift = static_cast<int>(bucket / kSubBuckets) - 1;
  const uint64_t low = (kSubBuckets + bucket % kSubBuckets) << shift;
  return low + (uint64_t{1} << shift) / 2;
}

void LatencyHistogram::Add(absl::Duration latency) {
  const int64_t ns = absl::ToInt64Nanoseconds(latency);
  ++counts_[BucketOf(static_cast<uint64_t>(std::max<int64_t>(ns, 0)))];
  ++count_;
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
}

absl::Duration LatencyHistogram::Percentile(double fraction) const {
  if (count_ == 0) return absl::ZeroDuration();
  const double rank = std::ceil(fraction * static_cast<double>(count_));
  const uint64_t wanted =
      std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, count_);
  uint64_t seen = 0;
  size_t bucket = 0;
  while ((seen += counts_[bucket]) < wanted) ++bucket;
  return absl::Nanoseconds(static_cast<int64_t>(ValueOf(bucket)));
}

}  // namespace kv
