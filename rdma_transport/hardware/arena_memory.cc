#include "rdma_transport/hardware/arena_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "memory/round_up.h"

namespace rdma {
namespace {

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

void* Map(size_t bytes, int flags) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Maps `bytes` at a multiple of kHugePageBytes, where transparent huge pages
// can begin. No pages are present yet.
void* MapAligned(size_t bytes) {
  if (bytes > SIZE_MAX - kHugePageBytes) {
    errno = ENOMEM;
    return nullptr;
  }
  auto* const mapped = static_cast<char*>(Map(bytes + kHugePageBytes, 0));
  if (mapped == nullptr) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(mapped);
  const size_t front = memory::RoundUp(start, kHugePageBytes) - start;
  char* const aligned = mapped + front;
  if (front != 0) munmap(mapped, front);
  if (front != kHugePageBytes) munmap(aligned + bytes, kHugePageBytes - front);
  return aligned;
}

// MADV_POPULATE_WRITE, of Linux 5.14. Older kernels say EINVAL: then the pages
// come when they are registered.
bool Populate(void* memory, size_t bytes) {
  constexpr int kPopulateWrite = 23;
  return madvise(memory, bytes, kPopulateWrite) == 0 || errno == EINVAL;
}

}  // namespace

void* AllocateArena(size_t bytes) {
  if (bytes == 0) {
    errno = EINVAL;
    return nullptr;
  }
  const bool huge = bytes % kHugePageBytes == 0;
  if (huge) {
    // Fails at once where fewer huge pages are reserved and free.
    void* const memory = Map(bytes, MAP_HUGETLB | MAP_POPULATE);
    if (memory != nullptr) return memory;
  }
  void* const memory = huge ? MapAligned(bytes) : Map(bytes, 0);
  if (memory == nullptr) return nullptr;
  // A hint: where it is refused, small pages do.
  if (huge) madvise(memory, bytes, MADV_HUGEPAGE);
  if (Populate(memory, memory::RoundUp(bytes, PageBytes()))) return memory;
  const int error = errno;
  FreeArena(memory, bytes);
  errno = error;
  return nullptr;
}

void FreeArena(void* memory, size_t bytes) {
  munmap(memory, memory::RoundUp(bytes, PageBytes()));
}

}  // namespace rdma
