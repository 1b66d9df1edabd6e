// Goal: percentiles are as exact as the header promises, over the whole range.
// Method: compare with sorted samples and with single values.
#include "benchmarks/latency_histogram.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace benchmarks {
namespace {

constexpr double kPrecision = 0.004;

TEST(LatencyHistogramTest, EmptyHasNoLatency) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  EXPECT_EQ(histogram->count(), 0u);
  EXPECT_EQ(histogram->PercentileNs(0.5), 0u);
}

TEST(LatencyHistogramTest, EverySingleValueComesBackWithinPrecision) {
  for (uint64_t value = 1; value < (uint64_t{1} << 62);
       value += value / 97 + 1) {
    const auto histogram = std::make_unique<LatencyHistogram>();
    histogram->Add(value);
    const double exact = static_cast<double>(value);
    EXPECT_NEAR(static_cast<double>(histogram->PercentileNs(0.5)), exact,
                exact * kPrecision);
  }
}

TEST(LatencyHistogramTest, TheLargestValueHasABucket) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  histogram->Add(UINT64_MAX);
  EXPECT_GT(histogram->PercentileNs(1), UINT64_MAX / 1000 * 996);
}

TEST(LatencyHistogramTest, PercentilesAgreeWithSortedSamples) {
  constexpr uint64_t kSeed = 20261121;
  std::mt19937_64 random(kSeed);
  std::lognormal_distribution<double> latency(7.0, 1.5);
  const auto histogram = std::make_unique<LatencyHistogram>();
  std::vector<uint64_t> samples;
  for (int i = 0; i < 100'000; ++i) {
    samples.push_back(static_cast<uint64_t>(latency(random)));
    histogram->Add(samples.back());
  }
  std::sort(samples.begin(), samples.end());
  EXPECT_EQ(histogram->count(), samples.size());
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank =
        static_cast<size_t>(fraction * static_cast<double>(samples.size()));
    const auto exact = static_cast<double>(samples[rank - 1]);
    EXPECT_NEAR(static_cast<double>(histogram->PercentileNs(fraction)), exact,
                exact * kPrecision + 1)
        << fraction;
  }
}

TEST(LatencyHistogramTest, ManyThreadsAdd) {
  const auto histogram = std::make_unique<LatencyHistogram>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&histogram] {
      for (uint64_t ns = 0; ns < 10'000; ++ns) histogram->Add(ns);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram->count(), 40'000u);
}

}  // namespace
}  // namespace benchmarks
