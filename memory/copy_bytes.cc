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

// By `store` in between, whole cache lines of the destination.
template <void (*store)(std::byte*, __m256i)>
[[gnu::target("avx")]] void Copy(std::byte* to, const std::byte* from,
                                 size_t bytes) {
  Store(to, Load(from));
  Store(to + kVector, Load(from + kVector));
  std::byte* const end = to + bytes;
  const size_t skip = kLine - reinterpret_cast<uintptr_t>(to) % kLine;
  to += skip;
  from += skip;
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
  Copy<StorePastCaches>(to, from, bytes);
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
