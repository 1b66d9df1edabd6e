// Every byte is copied, and no other one, whichever way it goes, and wherever
// the two begin.
#include "memory/copy_bytes.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace memory {
namespace {

constexpr size_t kRoom = 80;
constexpr std::byte kGuard{0xa5};

std::vector<std::byte> Pattern(size_t bytes) {
  std::vector<std::byte> pattern(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    pattern[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  return pattern;
}

// copy(to, from, bytes).
template <typename Copy>
void CheckCopies(size_t bytes, Copy copy) {
  const std::vector<std::byte> source = Pattern(bytes + kRoom);
  for (const size_t to_offset : {0, 1, 16, 31, 32, 33, 63}) {
    for (const size_t from_offset : {0, 1, 16, 31, 64}) {
      std::vector<std::byte> target(bytes + kRoom, kGuard);
      copy(target.data() + to_offset, source.data() + from_offset, bytes);
      const auto begin = target.begin() + static_cast<ptrdiff_t>(to_offset);
      const auto end = begin + static_cast<ptrdiff_t>(bytes);
      ASSERT_TRUE(std::equal(
          begin, end, source.begin() + static_cast<ptrdiff_t>(from_offset)))
          << bytes << " to " << to_offset << " from " << from_offset;
      const auto is_guard = [](std::byte value) { return value == kGuard; };
      ASSERT_TRUE(std::all_of(target.begin(), begin, is_guard)) << bytes;
      ASSERT_TRUE(std::all_of(end, target.end(), is_guard)) << bytes;
    }
  }
}

TEST(CopyBytesTest, CopiesEverySize) {
  for (size_t bytes = 0; bytes < 300; ++bytes) CheckCopies(bytes, CopyBytes);
  for (size_t bytes = kLeastVectorBytes - 3; bytes < kLeastVectorBytes + 300;
       ++bytes) {
    CheckCopies(bytes, CopyBytes);
  }
  for (const size_t bytes : {4095, 8192, 65537, 524288, 524289, 700001}) {
    CheckCopies(bytes, CopyBytes);
  }
}

TEST(CopyBytesTest, CopiesEverySizePastCaches) {
  for (size_t bytes = 0; bytes < 300; ++bytes) {
    CheckCopies(bytes, CopyPastCaches);
  }
  for (size_t bytes = kLeastVectorBytes - 3; bytes < kLeastVectorBytes + 300;
       ++bytes) {
    CheckCopies(bytes, CopyPastCaches);
  }
  for (const size_t bytes : {8192, 16384, 16447, 16512, 65537, 700001}) {
    CheckCopies(bytes, CopyPastCaches);
  }
}

TEST(CopyBytesTest, CopiesEverySizeByVectors) {
  std::byte scratch[2 * kLeastVectorBytes] = {};
  if (!CopyByVectors(scratch, scratch + kLeastVectorBytes, kLeastVectorBytes)) {
    GTEST_SKIP() << "this CPU has no vectors to copy by";
  }
  for (size_t bytes = kLeastVectorBytes; bytes < kLeastVectorBytes + 300;
       ++bytes) {
    CheckCopies(bytes, CopyByVectors);
  }
  for (const size_t bytes : {8192, 65537, 700001}) {
    CheckCopies(bytes, CopyByVectors);
  }
}

}  // namespace
}  // namespace memory
