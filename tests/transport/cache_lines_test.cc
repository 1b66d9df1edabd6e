// Fetching lines back may overwrite what it is told to, and touches nothing
// else, whichever way it takes: enough calls to time the way several times.
#include "rdma_transport/cache_lines.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr std::byte kGuard{0xa5};
constexpr size_t kMostBytes = 700;

void FetchAll(LineFetcher& fetcher) {
  alignas(kCacheLineBytes) std::byte memory[kMostBytes + 2 * kCacheLineBytes];
  for (size_t bytes = 1; bytes <= kMostBytes; ++bytes) {
    std::fill(std::begin(memory), std::end(memory), kGuard);
    std::byte* const begin = memory + 1 + bytes % kCacheLineBytes;
    fetcher.FetchBack(begin, bytes);
    for (std::byte* at = memory; at != std::end(memory); ++at) {
      const bool within = at >= begin && at < begin + bytes;
      ASSERT_TRUE(within || *at == kGuard) << bytes;
    }
  }
}

TEST(LineFetcherTest, TouchesOnlyWhatItIsTold) {
  LineFetcher fetcher;
  FetchAll(fetcher);
}

TEST(LineFetcherTest, StoresReachEachLineOnceAndNothingElse) {
  for (size_t bytes = 1; bytes <= kMostBytes; ++bytes) {
    alignas(kCacheLineBytes) std::byte memory[kMostBytes + 1];
    std::fill(std::begin(memory), std::end(memory), kGuard);
    LineFetcher::FetchBackByStores(memory, bytes);
    for (size_t at = 0; at <= kMostBytes; ++at) {
      const bool stored = at < bytes && at % kCacheLineBytes == 0;
      ASSERT_EQ(memory[at] != kGuard, stored) << at << " of " << bytes;
    }
  }
}

TEST(LineFetcherTest, ThreadsShareIt) {
  LineFetcher fetcher;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { FetchAll(fetcher); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rdma
