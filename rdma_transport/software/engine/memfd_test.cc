// Goal: memory passes between processes only where it cannot turn into a signal
// later: sealed in size, of the right kind, and writable only where meant.
// Method: segments made here and mapped here a second time, and descriptors
// that a careless or hostile peer might pass.
#include "rdma_transport/software/engine/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rdma::soft {
namespace {

constexpr size_t kBytes = 64 << 10;

UniqueFd Unsealed(size_t bytes) {
  UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  return fd;
}

TEST(MemfdTest, BothSidesSeeTheSameBytes) {
  const auto mine = Segment::Create("test", kBytes, Sharing::kWritableByPeers,
                                    Prefault::kYes);
  ASSERT_TRUE(mine.ok()) << mine.status();
  const auto its = MapPeerSegment(mine->fd(), {.writable = true});
  ASSERT_TRUE(its.ok()) << its.status();
  EXPECT_NE(its->base(), mine->base());
  EXPECT_EQ(its->bytes(), kBytes);
  mine->base()[5] = std::byte{42};
  EXPECT_EQ(its->base()[5], std::byte{42});
  its->base()[6] = std::byte{43};
  EXPECT_EQ(mine->base()[6], std::byte{43});
}

TEST(MemfdTest, RoundsUpToPagesAndIsZeroed) {
  const auto segment =
      Segment::Create("test", 5000, Sharing::kReadOnlyToPeers, Prefault::kNo);
  ASSERT_TRUE(segment.ok());
  EXPECT_EQ(segment->bytes(), 8192u);
  for (size_t i = 0; i < segment->bytes(); ++i) {
    ASSERT_EQ(segment->base()[i], std::byte{0});
  }
}

TEST(MemfdTest, LargeSegmentsStartOnAHugePageBoundary) {
  constexpr size_t kLarge = size_t{5} << 20;
  const auto segment =
      Segment::Create("test", kLarge, Sharing::kReadOnlyToPeers, Prefault::kNo);
  ASSERT_TRUE(segment.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(segment->base()) % (2 << 20), 0u);
  const auto its = MapPeerSegment(segment->fd(), {});
  ASSERT_TRUE(its.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(its->base()) % (2 << 20), 0u);
  EXPECT_EQ(its->bytes(), kLarge);
}

// Bytes at `base` that huge pages map, as /proc/self/smaps says.
size_t HugeBytesAt(const std::byte* base) {
  std::ifstream maps("/proc/self/smaps");
  const std::string start =
      absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(base)), "-");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) here = line.starts_with(start);
    size_t kilobytes;
    if (here && std::sscanf(line.c_str(), "ShmemPmdMapped: %zu", &kilobytes)) {
      return kilobytes << 10;
    }
  }
  return 0;
}

bool KernelCollapsesSharedMemory() {
  constexpr size_t kHuge = size_t{2} << 20;
  const UniqueFd fd = Unsealed(kHuge);
  void* const room =
      mmap(nullptr, 2 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(room, MAP_FAILED);
  const auto start = reinterpret_cast<uintptr_t>(room);
  void* const page =
      mmap(reinterpret_cast<void*>((start + kHuge - 1) / kHuge * kHuge), kHuge,
           PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(), 0);
  EXPECT_NE(page, MAP_FAILED);
  std::memset(page, 1, kHuge);
  const bool done = madvise(page, kHuge, 25 /* MADV_COLLAPSE */) == 0;
  munmap(room, 2 * kHuge);
  return done;
}

TEST(MemfdTest, LargeSegmentsAreOfHugePagesOnBothSides) {
  if (!KernelCollapsesSharedMemory()) {
    GTEST_SKIP() << "this kernel makes no huge pages of shared memory "
                    "(MADV_COLLAPSE, Linux 6.1), or has none to give";
  }
  constexpr size_t kLarge = size_t{5} << 20;
  const auto segment = Segment::Create(
      "test", kLarge, Sharing::kReadOnlyToPeers, Prefault::kYes);
  ASSERT_TRUE(segment.ok());
  const auto its = MapPeerSegment(segment->fd(), {});
  ASSERT_TRUE(its.ok());
  for (size_t i = 0; i < kLarge; i += 4096) {
    ASSERT_EQ(segment->base()[i], std::byte{0});
    ASSERT_EQ(its->base()[i], std::byte{0});
  }
  if (HugeBytesAt(segment->base()) != size_t{4} << 20 &&
      !KernelCollapsesSharedMemory()) {
    GTEST_SKIP() << "no huge page is left";
  }
  EXPECT_EQ(HugeBytesAt(segment->base()), size_t{4} << 20);
  EXPECT_EQ(HugeBytesAt(its->base()), size_t{4} << 20);
}

TEST(MemfdTest, ItsSizeCannotBeChanged) {
  const auto segment =
      Segment::Create("test", kBytes, Sharing::kWritableByPeers, Prefault::kNo);
  ASSERT_TRUE(segment.ok());
  EXPECT_NE(ftruncate(segment->fd(), 0), 0);
  EXPECT_NE(ftruncate(segment->fd(), 2 * kBytes), 0);
}

TEST(MemfdTest, PeersCannotWriteWhereTheyOnlyRead) {
  const auto segment =
      Segment::Create("test", kBytes, Sharing::kReadOnlyToPeers, Prefault::kNo);
  ASSERT_TRUE(segment.ok());
  EXPECT_FALSE(MapPeerSegment(segment->fd(), {.writable = true}).ok());
  EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                 segment->fd(), 0),
            MAP_FAILED)
      << "the kernel must refuse as well";
  EXPECT_TRUE(MapPeerSegment(segment->fd(), {}).ok());
}

TEST(MemfdTest, RefusesMemoryThatIsNotSealed) {
  const UniqueFd fd = Unsealed(kBytes);
  EXPECT_FALSE(MapPeerSegment(fd.get(), {}).ok());
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_FALSE(MapPeerSegment(fd.get(), {}).ok()) << "it could still shrink";
}

TEST(MemfdTest, RefusesDescriptorsThatAreNoMemory) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const UniqueFd in(pipe_fds[0]), out(pipe_fds[1]);
  EXPECT_FALSE(MapPeerSegment(in.get(), {}).ok());
  const UniqueFd null(open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(MapPeerSegment(null.get(), {}).ok());
  EXPECT_FALSE(MapPeerSegment(-1, {}).ok());
  const UniqueFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(MapPeerSegment(file.get(), {}).ok());
}

TEST(MemfdTest, RefusesSizesOutOfRange) {
  const auto segment =
      Segment::Create("test", kBytes, Sharing::kReadOnlyToPeers, Prefault::kNo);
  ASSERT_TRUE(segment.ok());
  EXPECT_FALSE(MapPeerSegment(segment->fd(), {.min_bytes = kBytes + 1}).ok());
  EXPECT_FALSE(MapPeerSegment(segment->fd(), {.max_bytes = kBytes - 1}).ok());
  const UniqueFd empty = Unsealed(0);
  ASSERT_EQ(fcntl(empty.get(), F_ADD_SEALS,
                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            0);
  EXPECT_FALSE(MapPeerSegment(empty.get(), {}).ok());
}

TEST(MemfdTest, TooMuchIsAnError) {
  const auto segment = Segment::Create(
      "test", size_t{1} << 60, Sharing::kReadOnlyToPeers, Prefault::kYes);
  EXPECT_EQ(segment.status().code(), absl::StatusCode::kResourceExhausted)
      << segment.status();
  EXPECT_FALSE(
      Segment::Create("test", 0, Sharing::kReadOnlyToPeers, Prefault::kNo)
          .ok());
}

TEST(MemfdTest, IdentityTellsTheSameMemory) {
  const auto a =
      Segment::Create("test", kBytes, Sharing::kReadOnlyToPeers, Prefault::kNo);
  const auto b =
      Segment::Create("test", kBytes, Sharing::kReadOnlyToPeers, Prefault::kNo);
  ASSERT_TRUE(a.ok() && b.ok());
  const UniqueFd again(dup(a->fd()));
  EXPECT_EQ(*CheckPeerSegment(a->fd(), {}), *CheckPeerSegment(again.get(), {}));
  EXPECT_NE(*CheckPeerSegment(a->fd(), {}), *CheckPeerSegment(b->fd(), {}));
}

}  // namespace
}  // namespace rdma::soft
