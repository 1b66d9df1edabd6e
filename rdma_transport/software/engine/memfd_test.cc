// Goal: memory passes between processes only where it cannot turn into a signal
// later: sealed in size, of the right kind, and writable only where meant.
// Method: segments made here and mapped here a second time, and descriptors
// that a careless or hostile peer might pass.
#include "rdma_transport/software/engine/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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
