#include "memory/copy_bytes.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>
#endif

namespace memory {

#if defined(__x86_64__)
namespace {

constexpr size_t kVector = sizeof(__m256i);
constexpr size_t kStep = 4 * kVector;
constexpr size_t kLine = 2 * kVector;
// How CopyPages reads: this many pages at a time, a line of each in turn.
constexpr size_t kPage = 4096;
constexpr size_t kPages = 4;
static_assert(kLeastVectorBytes >= kLine + kStep);

[[gnu::target("avx")]] __m256i Load(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
[[gnu::target("avx")]] void Store(std::byte* to, __m256i vector) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), vector);
}

// REQUIRES: an aligned destination.
[[gnu::target("avx")]] void StorePastCaches(std::byte* to, __m256i vector) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), vector);
}

// Past the caches, whole runs of kPages of the destination, which begins with a
// cache line. Returns how much that is.
[[gnu::target("avx")]] size_t CopyPages(std::byte* to, const std::byte* from,
                                        size_t bytes) {
  const size_t whole = bytes - bytes % (kPages * kPage);
  for (size_t run = 0; run != whole; run += kPages * kPage) {
    for (size_t line = run; line != run + kPage; line += kLine) {
      for (size_t at = line; at != line + kPages * kPage; at += kPage) {
        const __m256i first = Load(from + at);
        const __m256i second = Load(from + at + kVector);
        StorePastCaches(to + at, first);
        StorePastCaches(to + at + kVector, second);
      }
    }
  }
  return whole;
}

// By `store` in between, whole cache lines of the destination; `copy_pages`
// does as many as it likes of them first.
template <void (*store)(std::byte*, __m256i),
          size_t (*copy_pages)(std::byte*, const std::byte*, size_t) = nullptr>
[[gnu::target("avx")]] void Copy(std::byte* to, const std::byte* from,
                                 size_t bytes) {
  Store(to, Load(from));
  Store(to + kVector, Load(from + kVector));
  std::byte* const end = to + bytes;
  const size_t skip = -reinterpret_cast<uintptr_t>(to) % kLine;
  to += skip;
  from += skip;
  if constexpr (copy_pages != nullptr) {
    const size_t done = copy_pages(to, from, static_cast<size_t>(end - to));
    to += done;
    from += done;
  }
  const std::byte* const from_end = from + (end - to);
  for (; end - to > static_cast<ptrdiff_t>(kStep); to += kStep, from += kStep) {
    const __m256i first = Load(from);
    const __m256i second = Load(from + kVector);
    const __m256i third = Load(from + 2 * kVector);
    const __m256i fourth = Load(from + 3 * kVector);
    store(to, first);
    store(to + kVector, second);
    store(to + 2 * kVector, third);
    store(to + 3 * kVector, fourth);
  }
  for (size_t back = kStep; back != 0; back -= kVector) {
    Store(end - back, Load(from_end - back));
  }
}

bool HasAvx() {
  static const bool has = __builtin_cpu_supports("avx");
  return has;
}

bool MemcpyIsSlow() {
  static const bool is_slow = HasAvx() && __builtin_cpu_is("amd");
  return is_slow;
}

// Intel's cores fetch ahead within a page only, so several pages at a time come
// sooner. Not tried on other CPUs (docs/large_messages.md).
bool PagesAtATimeAreFaster() {
  static const bool are_faster = __builtin_cpu_is("intel");
  return are_faster;
}

}  // namespace

bool CopyByVectors(std::byte* to, const std::byte* from, size_t bytes) {
  if (!HasAvx()) return false;
  Copy<Store>(to, from, bytes);
  return true;
}

void CopyLong(std::byte* to, const std::byte* from, size_t bytes) {
  if (MemcpyIsSlow()) {
    Copy<Store>(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void CopyPastCaches(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes < kLeastVectorBytes || !HasAvx()) {
    return CopyBytes(to, from, bytes);
  }
  if (PagesAtATimeAreFaster()) {
    Copy<StorePastCaches, CopyPages>(to, from, bytes);
  } else {
    Copy<StorePastCaches>(to, from, bytes);
  }
  // Such stores are ordered by no release.
  _mm_sfence();
}
#else
void CopyPastCaches(std::byte* to, const std::byte* from, size_t bytes) {
  CopyBytes(to, from, bytes);
}

bool CopyByVectors(std::byte*, const std::byte*, size_t) { return false; }

void CopyLong(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace memory
