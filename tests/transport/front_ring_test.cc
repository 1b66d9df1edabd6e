// Goal: a front is given to one frame at a time, and again once that has been
// sent; the memory is there while it is needed, and no longer.
#include "rdma_transport/front_ring.h"

#include <cstddef>
#include <cstdint>
#include <set>

#include "gtest/gtest.h"
#include "tests/transport/fake_memory.h"

namespace rdma {
namespace {

using testing::FakeMemory;

constexpr uint64_t kBudgetBytes = 64 << 20;

TEST(FrontRingTest, GivesEachFrontToOneFrameAtATime) {
  const auto fake = FakeMemory::Create(kBudgetBytes);
  FrontRing ring;
  std::set<std::byte*> out;
  for (uint32_t i = 0; i < FrontRing::kFronts; ++i) {
    std::byte* const front = ring.Next(fake->memory());
    ASSERT_NE(front, nullptr);
    EXPECT_EQ(ring.Next(fake->memory()), front);  // until it is taken
    ring.Take();
    // Nor do they overlap.
    for (const std::byte* other : out) {
      EXPECT_GE(front < other ? other - front : front - other,
                static_cast<ptrdiff_t>(FrontRing::kFrontBytes));
    }
    out.insert(front);
  }
  EXPECT_EQ(ring.Next(fake->memory()), nullptr);
}

TEST(FrontRingTest, GivesTheOldestAgainOnceItIsReturned) {
  const auto fake = FakeMemory::Create(kBudgetBytes);
  FrontRing ring;
  std::byte* const first = ring.Next(fake->memory());
  for (uint32_t i = 0; i < FrontRing::kFronts; ++i) {
    ASSERT_NE(ring.Next(fake->memory()), nullptr);
    ring.Take();
  }
  for (int lap = 0; lap < 3; ++lap) {
    for (uint32_t i = 0; i < FrontRing::kFronts; ++i) {
      ring.Return();
      EXPECT_EQ(ring.Next(fake->memory()),
                first + size_t{i} * FrontRing::kFrontBytes);
      ring.Take();
      EXPECT_EQ(ring.Next(fake->memory()), nullptr);
    }
  }
}

TEST(FrontRingTest, HasNoneWhereThereIsNoMemory) {
  const auto fake = FakeMemory::Create(/*budget_bytes=*/0);
  FrontRing ring;
  EXPECT_EQ(ring.Next(fake->memory()), nullptr);
  EXPECT_FALSE(ring.has_memory());
}

TEST(FrontRingTest, GivesMemoryBackThatNoFrameUses) {
  const auto fake = FakeMemory::Create(kBudgetBytes);
  FrontRing ring;
  ring.GiveBackMemory();
  EXPECT_FALSE(ring.has_memory());
  ASSERT_NE(ring.Next(fake->memory()), nullptr);
  ring.Take();
  ring.GiveBackMemory();
  EXPECT_TRUE(ring.has_memory());
  ring.Return();
  ring.GiveBackMemory();
  EXPECT_FALSE(ring.has_memory());
  EXPECT_NE(ring.Next(fake->memory()), nullptr);
}

}  // namespace
}  // namespace rdma
