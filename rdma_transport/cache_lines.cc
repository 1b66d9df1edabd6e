#include "rdma_transport/cache_lines.h"

#include <chrono>

namespace rdma {
namespace {

// The scheduler of a virtual machine changes the distance within seconds.
constexpr uint32_t kCallsPerLook = 64;
// Near CPUs take 20 to 70 ns, with the clock's own time, and far ones 120 to
// 260.
constexpr std::chrono::nanoseconds kFar(100);

// How long it takes to own the line, which others have read.
std::chrono::nanoseconds TimeToOwn(std::byte* line) {
  const auto begun = std::chrono::steady_clock::now();
  std::atomic_ref<std::byte>(*line).exchange(std::byte{},
                                             std::memory_order_relaxed);
  return std::chrono::steady_clock::now() - begun;
}

}  // namespace

void LineFetcher::FetchBack(std::byte* begin, size_t bytes) {
  // Threads that count the same look at the same time, or one later.
  const uint32_t count = count_.load(std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_relaxed);
  if (count % kCallsPerLook == 0) {
    far_.store(TimeToOwn(begin) > kFar, std::memory_order_relaxed);
  }
  if (!far_.load(std::memory_order_relaxed)) {
    return FetchBackByStores(begin, bytes);
  }
  for (size_t at = 0; at < bytes; at += kCacheLineBytes) {
    FetchForWriting(begin + at);
  }
}

void LineFetcher::FetchBackByStores(std::byte* begin, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kCacheLineBytes) {
    *static_cast<volatile std::byte*>(begin + at) = std::byte{};
  }
}

}  // namespace rdma
