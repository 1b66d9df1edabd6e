// Goal: percentiles are right to 1.6% over the whole range of durations.
// Method: known sets, at powers of two above all.
#include "examples/kv/latency_histogram.h"

#include <cstdint>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace kv {
namespace {

double NanosecondsAt(const LatencyHistogram& histogram, double fraction) {
  return absl::ToDoubleNanoseconds(histogram.Percentile(fraction));
}

TEST(LatencyHistogramTest, AnEmptyOneIsZero) {
  EXPECT_EQ(LatencyHistogram().Percentile(0.5), absl::ZeroDuration());
}

TEST(LatencyHistogramTest, OneValueIsEveryPercentile) {
  for (int bit = 0; bit < 62; ++bit) {
    for (const int64_t offset : {-1, 0, 1}) {
      const int64_t ns = (int64_t{1} << bit) + offset;
      LatencyHistogram histogram;
      histogram.Add(absl::Nanoseconds(ns));
      for (const double fraction : {0.0, 0.5, 1.0}) {
        EXPECT_NEAR(NanosecondsAt(histogram, fraction), ns, 0.016 * ns) << ns;
      }
    }
  }
}

TEST(LatencyHistogramTest, PercentilesOfAUniformSet) {
  LatencyHistogram histogram;
  for (int us = 1; us <= 1000; ++us) histogram.Add(absl::Microseconds(us));
  EXPECT_EQ(histogram.count(), 1000u);
  EXPECT_NEAR(NanosecondsAt(histogram, 0.50), 500e3, 8e3);
  EXPECT_NEAR(NanosecondsAt(histogram, 0.99), 990e3, 16e3);
  EXPECT_NEAR(NanosecondsAt(histogram, 1.00), 1000e3, 16e3);
}

TEST(LatencyHistogramTest, MergeIsAddingBoth) {
  LatencyHistogram a;
  LatencyHistogram b;
  for (int i = 0; i < 99; ++i) a.Add(absl::Microseconds(1));
  b.Add(absl::Seconds(1));
  a.Merge(b);
  EXPECT_EQ(a.count(), 100u);
  EXPECT_NEAR(NanosecondsAt(a, 0.99), 1e3, 16);
  EXPECT_NEAR(NanosecondsAt(a, 1.0), 1e9, 16e6);
}

TEST(LatencyHistogramTest, TakesExtremes) {
  LatencyHistogram histogram;
  histogram.Add(-absl::Seconds(1));
  EXPECT_EQ(histogram.Percentile(1.0), absl::ZeroDuration());
  histogram.Add(absl::InfiniteDuration());
  EXPECT_GT(histogram.Percentile(1.0), absl::Hours(24));
}

}  // namespace
}  // namespace kv
