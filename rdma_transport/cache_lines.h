// Cache lines that a CPU is about to write to and that another one has read:
// each store there would wait until the other one has let go of its line.
#ifndef VERBENA_RDMA_TRANSPORT_CACHE_LINES_H_
#define VERBENA_RDMA_TRANSPORT_CACHE_LINES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rdma {

inline constexpr size_t kCacheLineBytes = 64;

// Has the cache get a line for writing, while its CPU does other things. A
// hint: CPUs leave out those for which they have no room.
inline void FetchForWriting(const void* line) {
#if defined(__x86_64__)
  // What the compiler would fetch for reading, but for newer CPUs only.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, /*rw=*/1);
#endif
}

// Fetches back the lines of what was sent, and is to be written to again.
//
// Stores get all of them, but one after the other, and what the CPU stores next
// waits behind them. Where the reader is near, in the same cache of the last
// level, that does not take long. Where it is far the next message would wait,
// and hints, of which there are as many under way as the CPU can have, do
// better (docs/hot_path.md). So the way of one line is timed now and then.
//
// Thread-safe.
class LineFetcher {
 public:
  // Overwrites [begin, begin + bytes) in parts. REQUIRES: bytes > 0.
  void FetchBack(std::byte* begin, size_t bytes);
  // The same, whatever the distance: one byte of each line is overwritten.
  static void FetchBackByStores(std::byte* begin, size_t bytes);

 private:
  std::atomic<uint32_t> count_{0};
  std::atomic<bool> far_{false};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CACHE_LINES_H_
