// Goal: arenas are aligned, zeroed, present, and given back. Method: mincore(2)
// tells which pages are there, and a second mapping whether they are gone.
#include "rdma_transport/hardware/arena_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace rdma {
namespace {

// Present pages of `bytes` at `memory`; -1 where nothing is mapped.
long CountPresentPages(void* memory, size_t bytes) {
  std::vector<unsigned char> present(bytes / sysconf(_SC_PAGESIZE));
  if (mincore(memory, bytes, present.data()) != 0) return -1;
  return std::count_if(present.begin(), present.end(),
                       [](unsigned char page) { return (page & 1) != 0; });
}

TEST(ArenaMemoryTest, IsZeroedPresentAndGivenBack) {
  const size_t page = sysconf(_SC_PAGESIZE);
  for (const size_t bytes : {page, 7 * page, kHugePageBytes, 4 * kHugePageBytes,
                             kHugePageBytes + page}) {
    auto* const memory = static_cast<uint8_t*>(AllocateArena(bytes));
    ASSERT_NE(memory, nullptr) << bytes;
    const size_t alignment =
        bytes % kHugePageBytes == 0 ? kHugePageBytes : page;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u) << bytes;
    EXPECT_EQ(CountPresentPages(memory, bytes),
              static_cast<long>(bytes / page));
    EXPECT_EQ(std::count(memory, memory + bytes, 0),
              static_cast<std::ptrdiff_t>(bytes));
    std::fill(memory, memory + bytes, 0xff);
    FreeArena(memory, bytes);
    EXPECT_EQ(CountPresentPages(memory, bytes), -1) << bytes;
  }
}

TEST(ArenaMemoryTest, TakesSizesThatAreNoMultipleOfAPage) {
  auto* const memory = static_cast<uint8_t*>(AllocateArena(100));
  ASSERT_NE(memory, nullptr);
  memory[99] = 1;
  FreeArena(memory, 100);
}

TEST(ArenaMemoryTest, SaysThatThereIsNoneWithoutHarm) {
  for (const size_t bytes : {size_t{1} << 60, SIZE_MAX / 2, SIZE_MAX}) {
    errno = 0;
    EXPECT_EQ(AllocateArena(bytes), nullptr) << bytes;
    EXPECT_EQ(errno, ENOMEM) << bytes;
  }
  EXPECT_EQ(AllocateArena(0), nullptr);
}

}  // namespace
}  // namespace rdma
