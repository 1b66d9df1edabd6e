// memcpy for the bytes of messages.
//
// glibc's memcpy takes `rep movsb` for 4 KiB to the second-level cache's size
// on AMD's CPUs (before 2.39: glibc bugs 30994 and 30995). On Zen 3 and 4 that
// costs twice what a loop of vectors does, and thirty to fifty times as much
// where the destination lies less than a cache line behind the source, modulo
// 4,096: where both begin somewhere in a page that is no matter of chance, and
// stays so for all of a process's messages (docs/large_messages.md).
//
// Thread rule: none; pure functions.
#ifndef VERBENA_MEMORY_COPY_BYTES_H_
#define VERBENA_MEMORY_COPY_BYTES_H_

#include <cstddef>
#include <cstring>

namespace memory {

inline constexpr size_t kLeastVectorBytes = 2048;

// Of so much at once the beginning is in no cache any more when the end has
// come, as a rule: it goes past them (docs/large_messages.md).
inline constexpr size_t kFewestBytesPastCaches = 8 << 20;

// The same number, of which the compiler knows no bound any more. GCC makes
// `rep movs` of a memcpy of up to so many bytes: for 64 of them that takes 8 ns
// longer than the function.
inline size_t Unbounded(size_t bytes) {
  asm("" : "+r"(bytes));
  return bytes;
}

// The way of long copies: of up to some 256 KiB, for none bypasses the caches.
void CopyLong(std::byte* to, const std::byte* from, size_t bytes);

// As memcpy: the two do not overlap, and are not null.
inline void CopyBytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes < kLeastVectorBytes) {
    std::memcpy(to, from, Unbounded(bytes));
  } else {
    CopyLong(to, from, bytes);
  }
}

// The same, past the caches, for what is longer than they hold: a store that
// finds no line there has the CPU read the line from memory first, which is
// half as much traffic again as the bytes' own way there and back. Whoever is
// given the bytes reads them from memory. Where the CPU has no AVX: CopyBytes.
void CopyPastCaches(std::byte* to, const std::byte* from, size_t bytes);

// What CopyLong does where memcpy is slow. False where this CPU cannot.
// REQUIRES: bytes >= kLeastVectorBytes.
bool CopyByVectors(std::byte* to, const std::byte* from, size_t bytes);

}  // namespace memory

#endif  // VERBENA_MEMORY_COPY_BYTES_H_
