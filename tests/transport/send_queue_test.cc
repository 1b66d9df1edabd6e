// Goal: a slot is free exactly when its work request is known to have
// completed; what a work request keeps alive is let go then, and not before.
// Method: the queue beside a device that completes what was signaled, at
// random.
#include "rdma_transport/send_queue.h"

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rdma {
namespace {

struct Posted {
  uint64_t wr_id;
  bool signaled;
};

constexpr uint64_t kSomeOffer = 1000;

// An entry whose completion is told of.
Posted PushOne(SendQueue& queue, bool signaled = false) {
  Posted posted = {0, signaled};
  queue.Push(&posted.signaled, &posted.wr_id).revoked_offer = kSomeOffer;
  return posted;
}

TEST(SendQueueTest, IdsAreOddAndDistinct) {
  SendQueue queue(8);
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const Posted posted = PushOne(queue, true);
    EXPECT_EQ(posted.wr_id & 1, 1u) << "receives carry even ones";
    EXPECT_GT(posted.wr_id, last);
    last = posted.wr_id;
    queue.Complete(posted.wr_id, [](SendEntry&) {});
  }
}

TEST(SendQueueTest, HasRoomForItsDepthAndNoMore) {
  SendQueue queue(4);
  EXPECT_TRUE(queue.HasRoom(4));
  EXPECT_FALSE(queue.HasRoom(5));
  const Posted first = PushOne(queue, true);
  for (int i = 1; i < 4; ++i) PushOne(queue, true);
  EXPECT_TRUE(queue.HasRoom(0));
  EXPECT_FALSE(queue.HasRoom(1));
  queue.Complete(first.wr_id, [](SendEntry&) {});
  EXPECT_TRUE(queue.HasRoom(1));
  EXPECT_FALSE(queue.HasRoom(2));
}

TEST(SendQueueTest, ACompletionSpeaksForThoseBeforeIt) {
  SendQueue queue(8);
  std::vector<uint64_t> offers;
  for (uint64_t offer = 1; offer <= 3; ++offer) {
    bool signaled = false;
    uint64_t wr_id;
    queue.Push(&signaled, &wr_id).revoked_offer = offer;
  }
  const Posted last = PushOne(queue, true);
  EXPECT_FALSE(queue.empty());
  queue.Complete(last.wr_id, [&offers](SendEntry& entry) {
    offers.push_back(entry.revoked_offer);
  });
  EXPECT_EQ(offers, (std::vector<uint64_t>{1, 2, 3, kSomeOffer}));
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueueTest, PlainEntriesAreFreedWithoutAWord) {
  SendQueue queue(8);
  bool signaled = true;
  uint64_t wr_id;
  queue.PushPlain(&signaled, &wr_id);
  queue.Complete(wr_id, [](SendEntry&) { FAIL(); });
  EXPECT_TRUE(queue.empty());
  // As one that could have kept something.
  queue.Push(&signaled, &wr_id);
  queue.Complete(wr_id, [](SendEntry&) { FAIL(); });
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueueTest, OneCompletionIsAskedForInEverySoMany) {
  SendQueue queue(256);
  for (int round = 0; round < 100; ++round) {
    Posted posted;
    for (uint32_t i = 1; i < SendQueue::kSignalEvery; ++i) {
      EXPECT_FALSE(PushOne(queue).signaled);
    }
    posted = PushOne(queue);
    EXPECT_TRUE(posted.signaled);
    queue.Complete(posted.wr_id, [](SendEntry&) {});
    EXPECT_TRUE(queue.empty());
  }
}

TEST(SendQueueTest, AWantedCompletionCountsAsOne) {
  SendQueue queue(256);
  for (uint32_t i = 1; i < SendQueue::kSignalEvery; ++i) PushOne(queue);
  EXPECT_TRUE(PushOne(queue, true).signaled);
  for (uint32_t i = 1; i < SendQueue::kSignalEvery; ++i) {
    EXPECT_FALSE(PushOne(queue).signaled);
  }
}

TEST(SendQueueTest, KnowsWhetherItsEndWillBeToldOf) {
  SendQueue queue(8);
  EXPECT_FALSE(queue.ends_unsignaled());
  PushOne(queue, false);
  EXPECT_TRUE(queue.ends_unsignaled());
  const Posted signaled = PushOne(queue, true);
  EXPECT_FALSE(queue.ends_unsignaled());
  PushOne(queue, false);
  queue.Complete(signaled.wr_id, [](SendEntry&) {});
  EXPECT_TRUE(queue.ends_unsignaled());
}

TEST(SendQueueTest, NoDepthFillsUpWithNothingSignaled) {
  for (uint32_t depth = 1; depth <= 130; ++depth) {
    SendQueue queue(depth);
    int signaled = 0;
    while (queue.HasRoom(1)) signaled += PushOne(queue).signaled;
    EXPECT_GE(signaled, 1) << "depth " << depth;
  }
}

TEST(SendQueueTest, BuffersLiveUntilTheCompletion) {
  SendQueue queue(8);
  rpc::Buffer buffer = rpc::Buffer::FromHeap(100);
  bool signaled = true;
  uint64_t wr_id;
  queue.Push(&signaled, &wr_id).buffers.Append(buffer);
  EXPECT_FALSE(buffer.block()->unique());
  queue.Complete(
      wr_id, [&buffer](SendEntry&) { EXPECT_FALSE(buffer.block()->unique()); });
  EXPECT_TRUE(buffer.block()->unique());
}

TEST(SendQueueTest, WhatWasNotPostedIsTakenBack) {
  SendQueue queue(8);
  rpc::Buffer buffer = rpc::Buffer::FromHeap(100);
  const Posted first = PushOne(queue, true);
  for (int i = 0; i < 3; ++i) {
    bool signaled = false;
    uint64_t wr_id;
    queue.Push(&signaled, &wr_id).buffers.Append(buffer);
  }
  queue.Unpush(3);
  EXPECT_TRUE(buffer.block()->unique());
  int completed = 0;
  queue.Complete(first.wr_id, [&completed](SendEntry&) { ++completed; });
  EXPECT_EQ(completed, 1);
  EXPECT_TRUE(queue.empty());
  // The next one takes the place, with a clean entry.
  bool signaled = false;
  uint64_t wr_id;
  EXPECT_TRUE(queue.Push(&signaled, &wr_id).buffers.empty());
  EXPECT_EQ(wr_id, first.wr_id + 2);
}

TEST(SendQueueTest, ACompletionThatCameAlreadyDoesNothing) {
  SendQueue queue(8);
  const Posted first = PushOne(queue, true);
  const Posted second = PushOne(queue, true);
  int completed = 0;
  const auto count = [&completed](SendEntry&) { ++completed; };
  queue.Complete(second.wr_id, count);
  queue.Complete(first.wr_id, count);
  queue.Complete(second.wr_id, count);
  EXPECT_EQ(completed, 2);
  queue.Complete(second.wr_id + 100, count);  // of nothing that was posted
  EXPECT_EQ(completed, 2);
}

TEST(SendQueueTest, AFlushMayPushFromInsideACompletion) {
  SendQueue queue(2);
  const Posted posted = PushOne(queue, true);
  PushOne(queue, true);
  queue.Complete(posted.wr_id, [&queue](SendEntry&) { PushOne(queue, true); });
  EXPECT_FALSE(queue.HasRoom(1));
}

class RandomDeviceTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomDeviceTest, EntriesComeBackOnceAndInOrder) {
  std::mt19937 random(GetParam());
  for (const uint32_t depth : {1u, 2u, 3u, 7u, 64u, 256u}) {
    SendQueue queue(depth);
    std::deque<Posted> device;
    std::deque<uint64_t> kept;  // offers of what was pushed and is not plain
    uint64_t pushed = 0;
    uint64_t worked = 0;  // by the device
    uint64_t completed = 0;
    uint32_t plain_of_ten = 5;
    for (int step = 0; step < 20'000; ++step) {
      // Runs of few and of many plain ones.
      if (step % 500 == 0) plain_of_ten = random() % 11;
      if (random() % 2 == 0 && queue.HasRoom(1)) {
        Posted posted = {0, random() % 16 == 0};
        ++pushed;
        if (random() % 10 < plain_of_ten) {
          queue.PushPlain(&posted.signaled, &posted.wr_id);
        } else {
          queue.Push(&posted.signaled, &posted.wr_id).revoked_offer = pushed;
          kept.push_back(pushed);
        }
        device.push_back(posted);
      } else {
        // The device works through its queue up to something signaled.
        while (!device.empty()) {
          const Posted done = device.front();
          device.pop_front();
          ++worked;
          if (!done.signaled) continue;
          queue.Complete(done.wr_id, [&kept](SendEntry& entry) {
            ASSERT_EQ(entry.revoked_offer, kept.front());
            kept.pop_front();
          });
          completed = worked;
          ASSERT_TRUE(kept.empty() || kept.front() > completed);
          break;
        }
      }
      ASSERT_LE(pushed - completed, depth);
      ASSERT_EQ(queue.empty(), pushed == completed);
      ASSERT_EQ(queue.HasRoom(1), pushed - completed < depth);
    }
    EXPECT_GT(completed, 1000u) << "depth " << depth;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDeviceTest, ::testing::Range(1u, 5u));

}  // namespace
}  // namespace rdma
