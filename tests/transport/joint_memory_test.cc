// Goal: memory that one connection's peer writes to is nobody else's, leaves
// room to others, and goes when it is not needed, but never while the peer
// writes to it; and nobody waits for that peer.
// Method: over a device of plain memory, which delays or refuses to let regions
// go.
#include "rdma_transport/joint_memory.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/registered_memory.h"
#include "tests/transport/fake_memory.h"

namespace rdma {
namespace {

using testing::FakeMemory;

constexpr uint64_t kMiB = 1 << 20;

rpc::Buffer Take(FakeMemory& fake, size_t bytes) {
  absl::StatusOr<rpc::Buffer> buffer = fake.memory().Allocate(bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return buffer.ok() ? *std::move(buffer) : rpc::Buffer();
}

// It is made, and given back, by a thread of its own.
void ExpectLiveRegions(FakeMemory& fake, int count) {
  for (int i = 0; i < 10'000 && fake.device().live_regions() != count; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(fake.device().live_regions(), count);
}

void ExpectRegisteredBytes(FakeMemory& fake, uint64_t bytes) {
  for (int i = 0; i < 10'000 && fake.memory().registered_bytes() != bytes;
       ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(fake.memory().registered_bytes(), bytes);
}

rpc::Buffer TakeJoint(FakeMemory& fake, uint64_t owner, size_t bytes) {
  for (int i = 0; i < 10'000; ++i) {
    absl::StatusOr<rpc::Buffer> buffer =
        fake.memory().AllocateJoint(owner, bytes);
    if (buffer.ok()) return *std::move(buffer);
    absl::SleepFor(absl::Milliseconds(1));
  }
  ADD_FAILURE() << "no joint memory came";
  return rpc::Buffer();
}

TEST(JointMemoryTest, RoomInFrontIsNoPeers) {
  constexpr size_t kFront = 64;
  const auto fake = FakeMemory::Create(64 * kMiB);
  RegisteredMemory& memory = fake->memory();
  const rpc::Buffer small = Take(*fake, 1000);
  EXPECT_TRUE(memory.HasRoomInFront(small, kFront));
  EXPECT_FALSE(memory.HasRoomInFront(small, small.headroom() + 1));
  EXPECT_FALSE(memory.HasRoomInFront(rpc::Buffer::FromHeap(100), 0));
  EXPECT_FALSE(memory.HasRoomInFront(rpc::Buffer(), 0));
  rpc::Buffer joint = TakeJoint(*fake, 1, kMiB);
  joint.remove_prefix(kFront);
  EXPECT_EQ(joint.headroom(), kFront);
  EXPECT_FALSE(memory.HasRoomInFront(joint, kFront)) << "the peer writes there";
  const rpc::Buffer shared = small;
  EXPECT_FALSE(memory.HasRoomInFront(small, kFront));
}

TEST(JointMemoryTest, NoTwoOwnersShareARegion) {
  const auto fake = FakeMemory::Create(256 * kMiB);
  const rpc::Buffer shared = Take(*fake, 2 * kMiB);
  const rpc::Buffer first = TakeJoint(*fake, 1, 2 * kMiB);
  const rpc::Buffer second = TakeJoint(*fake, 2, 2 * kMiB);
  const rpc::Buffer third = TakeJoint(*fake, 1, 2 * kMiB);
  EXPECT_NE(RegisteredMemory::MrOf(first), RegisteredMemory::MrOf(second));
  EXPECT_NE(RegisteredMemory::MrOf(first), RegisteredMemory::MrOf(shared));
  EXPECT_EQ(RegisteredMemory::MrOf(first), RegisteredMemory::MrOf(third));
  EXPECT_TRUE(fake->memory().Owns(first));
  EXPECT_EQ(first.size(), 2 * kMiB);
  // Nor does a buffer of everybody's come from there, and be it the last room.
  fake->memory().ReleaseJoint(2);
  std::vector<rpc::Buffer> held;
  for (;;) {
    absl::StatusOr<rpc::Buffer> buffer = fake->memory().Allocate(kMiB / 2);
    if (!buffer.ok()) break;
    const ibv_mr* const mr = RegisteredMemory::MrOf(*buffer);
    ASSERT_NE(mr, RegisteredMemory::MrOf(first));
    ASSERT_NE(mr, RegisteredMemory::MrOf(second));
    held.push_back(*std::move(buffer));
  }
}

TEST(JointMemoryTest, WhatIsReleasedGoesWithItsLastBuffer) {
  const auto fake = FakeMemory::Create(256 * kMiB);
  rpc::Buffer first = TakeJoint(*fake, 1, kMiB);
  rpc::Buffer second = TakeJoint(*fake, 1, kMiB);
  const rpc::Buffer others = TakeJoint(*fake, 2, kMiB);
  const uint64_t registered = fake->memory().registered_bytes();
  fake->memory().ReleaseJoint(1);
  EXPECT_EQ(fake->memory().registered_bytes(), registered) << "in use";
  std::memset(first.mutable_data(), 1, first.size());
  first.reset();
  EXPECT_EQ(fake->memory().registered_bytes(), registered);
  second.reset();
  ExpectRegisteredBytes(*fake, registered / 2);
  EXPECT_EQ(fake->device().live_regions(), 1);
  // What is not in use goes at once.
  TakeJoint(*fake, 3, 8 * kMiB).reset();
  EXPECT_EQ(fake->device().live_regions(), 2);
  fake->memory().ReleaseJoint(3);
  ExpectLiveRegions(*fake, 1);
}

// Deregistering waits for a peer that is stopped while it writes.
TEST(JointMemoryTest, NobodyWaitsForAPeerThatWrites) {
  absl::Notification all_done;
  std::atomic<bool> waited_in_vain = false;
  const auto fake = FakeMemory::Create(64 * kMiB);
  rpc::Buffer last = TakeJoint(*fake, 1, 4 * kMiB);
  TakeJoint(*fake, 1, 4 * kMiB).reset();
  EXPECT_EQ(fake->device().live_regions(), 2);
  fake->device().OnDeregMr([&] {
    if (!all_done.WaitForNotificationWithTimeout(absl::Seconds(10))) {
      waited_in_vain = true;
    }
  });
  fake->memory().ReleaseJoint(1);
  last.reset();
  EXPECT_EQ(Take(*fake, 4 * kMiB).size(), 4 * kMiB);
  EXPECT_EQ(fake->memory().registered_bytes(), 12 * kMiB) << "still there";
  all_done.Notify();
  ExpectRegisteredBytes(*fake, 4 * kMiB);
  EXPECT_FALSE(waited_in_vain);
}

// What a peer holds is tried again and again, beside what nobody holds.
TEST(JointMemoryTest, WhatAPeerHoldsStaysInTheBudgetUntilItLetsGo) {
  std::atomic<int> tries = 0;
  const auto fake = FakeMemory::Create(64 * kMiB);
  {
    std::vector<rpc::Buffer> held;
    for (int i = 0; i < 4; ++i) held.push_back(TakeJoint(*fake, 1, 4 * kMiB));
  }
  fake->device().OnDeregMr([&] { ++tries; });
  fake->device().FailDeregMr(EBUSY);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fake->memory().Allocate(64 * kMiB).status().code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(fake->memory().registered_bytes(), 16 * kMiB);
  }
  EXPECT_GE(tries, 4);
  EXPECT_LE(tries, 4 + 2) << "each once, and one every five seconds";
  fake->device().FailDeregMr(0);
  // Others go at once,
  TakeJoint(*fake, 2, 4 * kMiB).reset();
  EXPECT_EQ(Take(*fake, 48 * kMiB).size(), 48 * kMiB);
  // and it does, a few seconds later.
  ExpectRegisteredBytes(*fake, 48 * kMiB);
  EXPECT_EQ(fake->device().live_regions(), 1);
}

TEST(JointMemoryTest, HalfOfTheBudgetIsLeftToOthers) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  std::vector<rpc::Buffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(TakeJoint(*fake, 1, 8 * kMiB));
  EXPECT_EQ(fake->memory().registered_bytes(), 32 * kMiB);
  EXPECT_FALSE(fake->memory().AllocateJoint(1, 8 * kMiB).ok());
  EXPECT_FALSE(fake->memory().AllocateJoint(2, 8 * kMiB).ok());
  EXPECT_EQ(Take(*fake, 32 * kMiB).size(), 32 * kMiB);
}

TEST(JointMemoryTest, WhatNobodyUsesMakesRoomForOthers) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  {
    std::vector<rpc::Buffer> held;
    for (int i = 0; i < 4; ++i) held.push_back(TakeJoint(*fake, 1, 8 * kMiB));
  }
  EXPECT_EQ(Take(*fake, 64 * kMiB).size(), 64 * kMiB);
}

TEST(JointMemoryTest, WhatIsBeingMadeMakesRoomForOthers) {
  for (int i = 0; i < 20; ++i) {
    const auto fake = FakeMemory::Create(64 * kMiB);
    EXPECT_FALSE(fake->memory().AllocateJoint(1, 32 * kMiB).ok());
    EXPECT_EQ(Take(*fake, 64 * kMiB).size(), 64 * kMiB);
  }
}

// Also where somebody asks for joint memory all the time.
TEST(JointMemoryTest, WhoPressesIsNotOvertaken) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  fake->device().OnDeregMr([] { absl::SleepFor(absl::Milliseconds(1)); });
  std::atomic<bool> stop = false;
  std::thread other([&] {
    // Gets none, as each time another owner asks.
    for (uint64_t owner = 1; !stop; ++owner) {
      EXPECT_FALSE(fake->memory().AllocateJoint(owner, 16 * kMiB).ok());
    }
  });
  absl::SleepFor(absl::Milliseconds(10));
  const absl::Time start = absl::Now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Take(*fake, 52 * kMiB).size(), 52 * kMiB);
    EXPECT_FALSE(fake->memory().Allocate(65 * kMiB).ok());
  }
  EXPECT_LT(absl::Now() - start, absl::Seconds(10));
  stop = true;
  other.join();
}

// An owner whose messages grow does not keep what was for shorter ones.
TEST(JointMemoryTest, LongerOnesTakeTheShortOnesPlace) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  for (size_t bytes = 4 * kMiB; bytes <= 32 * kMiB; bytes += 4 * kMiB) {
    TakeJoint(*fake, 1, bytes).reset();
  }
  EXPECT_LE(fake->memory().registered_bytes(), 32 * kMiB);
}

TEST(JointMemoryTest, MayEndWhileSomeIsBeingMade) {
  for (int i = 0; i < 20; ++i) {
    const auto fake = FakeMemory::Create(256 * kMiB);
    EXPECT_FALSE(fake->memory().AllocateJoint(1, 16 * kMiB).ok());
    if (i % 2 == 0) fake->memory().ReleaseJoint(1);
  }
}

// A connection's: only where one large attachment comes after the other.
TEST(JointMemoryTest, IsMadeForManyAndGivenBackWhenTheyEnd) {
  const auto fake = FakeMemory::Create(256 * kMiB);
  {
    JointMemory joint(&fake->memory());
    for (int i = 0; i < 7; ++i) {
      EXPECT_FALSE(joint.Allocate(kMiB).has_value());
    }
    EXPECT_TRUE(joint.StaysInUse());
    EXPECT_FALSE(joint.StaysInUse());
    EXPECT_EQ(fake->device().live_regions(), 0) << "there were too few";
  }
  JointMemory joint(&fake->memory());
  std::optional<rpc::Buffer> buffer;
  for (int i = 0; i < 10'000 && !buffer.has_value(); ++i) {
    buffer = joint.Allocate(kMiB);
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_TRUE(buffer.has_value());
  EXPECT_TRUE(joint.StaysInUse());
  EXPECT_FALSE(joint.StaysInUse());
  EXPECT_EQ(fake->device().live_regions(), 1) << "it is in use";
  buffer.reset();
  ExpectLiveRegions(*fake, 0);
}

}  // namespace
}  // namespace rdma
