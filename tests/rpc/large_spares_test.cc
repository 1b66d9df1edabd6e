#include "rpc/internal/large_spares.h"

#include <atomic>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/rpc/counted_node.h"

namespace rpc::internal {
namespace {

using Node = testing::CountedNode;

std::atomic<int>& living = Node::living;

constexpr absl::Duration kLongest = absl::Seconds(20);  // on a busy host

bool ComesTo(int count) {
  const absl::Time end = absl::Now() + kLongest;
  while (living != count && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  return living == count;
}

TEST(LargeSparesTest, GivesBackWhatItGot) {
  LargeSpares spares;
  EXPECT_EQ(spares.Take(), nullptr);
  auto* const node = new Node;
  spares.Give(node);
  EXPECT_EQ(spares.Take(), node);
  EXPECT_EQ(spares.Take(), nullptr);
  delete node;
}

TEST(LargeSparesTest, KeepsAFew) {
  {
    LargeSpares spares;
    for (uint32_t i = 0; i < 2 * LargeSpares::kMost; ++i) {
      spares.Give(new Node);
    }
    EXPECT_EQ(living, static_cast<int>(LargeSpares::kMost));
  }
  EXPECT_EQ(living, 0);
}

TEST(LargeSparesTest, WhatNobodyUsesGoes) {
  LargeSpares spares;
  for (int round = 0; round < 2; ++round) {
    spares.Give(new Node);
    spares.Give(new Node);
    const absl::Time given = absl::Now();
    EXPECT_TRUE(ComesTo(0));
    EXPECT_GE(absl::Now() - given, LargeSpares::kIdleTimeout / 2);
  }
}

TEST(LargeSparesTest, WhatIsNeededStaysAndTheRestGoes) {
  LargeSpares spares;
  for (int i = 0; i < 3; ++i) spares.Give(new Node);
  const absl::Time end = absl::Now() + kLongest;
  std::unique_ptr<FreeListNode> taken;
  const auto take = [&] {
    taken.reset(spares.Take());
    return taken != nullptr;
  };
  while (living > 1 && absl::Now() < end) {
    ASSERT_TRUE(take());
    absl::SleepFor(absl::Milliseconds(1));
    spares.Give(taken.release());
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(living, 1);
  ASSERT_TRUE(take());
}

}  // namespace
}  // namespace rpc::internal
