// Goal: elements come out in the order in which they went in; what they hold is
// given back when they go, and their memory is used again, in bounds.
#include "rdma_transport/recycled_queue.h"

#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rdma {
namespace {

struct Parcel {
  int number = 0;
  std::vector<int> memory;
  std::shared_ptr<int> held;
  void Recycle() { held.reset(); }
};

using Queue = RecycledQueue<Parcel>;

void PushNumber(Queue& queue, int number) { queue.Push().number = number; }

TEST(RecycledQueueTest, IsInOrder) {
  std::mt19937 random(1);
  Queue queue;
  std::deque<int> expected;
  for (int i = 0; i < 10'000; ++i) {
    // Waves, so that it runs empty as well as over what is kept.
    const bool grows = i / 500 % 2 == 0;
    if (random() % 4 < (grows ? 3u : 1u)) {
      PushNumber(queue, i);
      expected.push_back(i);
    } else if (!expected.empty()) {
      ASSERT_EQ(queue.front().number, expected.front());
      queue.Pop();
      expected.pop_front();
    }
    ASSERT_EQ(queue.size(), expected.size());
    ASSERT_EQ(queue.empty(), expected.empty());
  }
}

TEST(RecycledQueueTest, WhatWasPoppedIsUsedAgain) {
  Queue queue;
  queue.Push().memory.resize(1000);
  const Parcel* const first = &queue.front();
  const int* const memory = queue.front().memory.data();
  queue.Pop();
  EXPECT_EQ(&queue.Push(), first);
  EXPECT_EQ(queue.front().memory.data(), memory);
}

TEST(RecycledQueueTest, ElementsStayWhereTheyAre) {
  Queue queue;
  Parcel* const first = &queue.Push();
  for (int i = 0; i < 1000; ++i) queue.Push();
  EXPECT_EQ(&queue.front(), first);
}

TEST(RecycledQueueTest, WhatIsHeldIsGivenBackAtOnce) {
  Queue queue;
  const auto held = std::make_shared<int>();
  queue.Push().held = held;
  queue.Push().held = held;
  EXPECT_EQ(held.use_count(), 3);
  queue.Pop();
  EXPECT_EQ(held.use_count(), 2);
  queue.RemoveIf([](const Parcel&) { return true; });
  EXPECT_EQ(held.use_count(), 1);
}

TEST(RecycledQueueTest, RemovesThoseAskedForOnly) {
  Queue queue;
  for (int i = 0; i < 10; ++i) PushNumber(queue, i);
  queue.RemoveIf([](const Parcel& parcel) { return parcel.number % 3 == 0; });
  for (const int expected : {1, 2, 4, 5, 7, 8}) {
    ASSERT_FALSE(queue.empty());
    EXPECT_EQ(queue.front().number, expected);
    queue.Pop();
  }
  EXPECT_TRUE(queue.empty());
}

// What is given back may run a user's code, which may come back here.
TEST(RecycledQueueTest, MayBeChangedByWhatIsGivenBack) {
  Queue queue;
  const auto push_when_let_go = [&queue](std::shared_ptr<int>& held) {
    held = std::shared_ptr<int>(new int, [&queue](int* number) {
      queue.RemoveIf([](const Parcel& parcel) { return parcel.number == 2; });
      PushNumber(queue, 9);
      delete number;
    });
  };
  for (int i = 0; i < 4; ++i) PushNumber(queue, i);
  push_when_let_go(queue.front().held);
  queue.Pop();  // 1, 3, 9
  EXPECT_EQ(queue.size(), 3u);
  push_when_let_go(queue.front().held);
  queue.RemoveIf([](const Parcel& parcel) { return parcel.number == 1; });
  ASSERT_EQ(queue.size(), 3u);  // 3, 9, 9
  EXPECT_EQ(queue.front().number, 3);
  push_when_let_go(queue.front().held);
  queue.Clear();
  ASSERT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.front().number, 9);
}

// Of a queue that was long once little is kept, and nothing after FreeSpares.
class LongQueueTest : public testing::Test {
 protected:
  // The parcels' memory is counted where its owner is asked.
  struct Counted {
    std::shared_ptr<int> kept;  // not given back by Recycle
    void Recycle() {}
  };
  void Lengthen() {
    for (int i = 0; i < 1000; ++i) queue_.Push().kept = count_;
  }
  void Empty() {
    while (!queue_.empty()) queue_.Pop();
  }
  size_t kept() const { return static_cast<size_t>(count_.use_count()) - 1; }

  const std::shared_ptr<int> count_ = std::make_shared<int>();
  RecycledQueue<Counted> queue_;
};

TEST_F(LongQueueTest, FewAreKept) {
  Lengthen();
  Empty();
  EXPECT_EQ(kept(), RecycledQueue<Counted>::kMostSpares);
  Lengthen();
  EXPECT_EQ(kept(), 1000u);
  Empty();
  EXPECT_EQ(kept(), RecycledQueue<Counted>::kMostSpares);
}

TEST_F(LongQueueTest, SparesAreFreed) {
  Lengthen();
  Empty();
  queue_.FreeSpares();
  EXPECT_EQ(kept(), 0u);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(LongQueueTest, ClearFreesAll) {
  Lengthen();
  queue_.Pop();
  queue_.Clear();
  EXPECT_EQ(kept(), 0u);
  EXPECT_TRUE(queue_.empty());
}

}  // namespace
}  // namespace rdma
