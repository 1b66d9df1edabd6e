// Goal: as many receives are posted as were promised, within depth and budget;
// a received buffer is its holder's, for as long and on whatever thread he
// likes, also after the pool's owner has gone.
// Method: over a device of plain memory whose SRQ shows what was posted, and
// refuses on demand.
#include "rdma_transport/receive_pool.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/verbs/queues.h"
#include "tests/transport/fake_memory.h"

namespace rdma {
namespace {

using testing::FakeDevice;
using testing::FakeMemory;
using ::testing::HasSubstr;

constexpr uint32_t kBufferBytes = 1024;
constexpr uint32_t kDepth = 1024;
// Registered at once; the pool grows by this.
constexpr uint64_t kSlabBytes = 64 * kBufferBytes;

class ReceivePoolTest : public ::testing::Test {
 protected:
  void Create(uint64_t budget_bytes, uint32_t depth = kDepth) {
    fake_ = FakeMemory::Create(1 << 20);
    srq_ = *SharedReceiveQueue::Create(fake_->pd(), depth, 1);
    absl::StatusOr<ReceivePool*> pool = ReceivePool::Create(
        fake_->pd(), srq_.get(), fake_, {kBufferBytes, budget_bytes, depth});
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *pool;
  }
  ~ReceivePoolTest() override { Close(); }

  void Close() {
    srq_.reset();
    if (pool_ != nullptr) std::exchange(pool_, nullptr)->Close();
    fake_.reset();
  }

  size_t posted() const { return FakeDevice::posted_receives(srq_->get()); }

  // A message of `text` arrives.
  rpc::Buffer Receive(std::string_view text = "x") {
    ibv_sge sge;
    const ibv_recv_wr wr = FakeDevice::TakeReceive(srq_->get(), &sge);
    EXPECT_EQ(sge.length, kBufferBytes);
    EXPECT_EQ(wr.wr_id & 1, 0u) << "sends carry odd ones";
    std::memcpy(reinterpret_cast<void*>(sge.addr), text.data(), text.size());
    return pool_->Take(wr.wr_id, static_cast<uint32_t>(text.size()));
  }

  std::shared_ptr<FakeMemory> fake_;
  std::unique_ptr<SharedReceiveQueue> srq_;
  ReceivePool* pool_ = nullptr;
};

TEST_F(ReceivePoolTest, PostsWhatWasPromisedBeforeItIsPromised) {
  Create(1 << 20);
  const size_t margin = posted();
  EXPECT_GT(margin, 0u);
  for (uint32_t reserved = 8; reserved <= 80; reserved += 8) {
    ASSERT_TRUE(pool_->Reserve(8).ok());
    EXPECT_EQ(pool_->reserved(), reserved);
    EXPECT_GE(posted(), reserved);
    EXPECT_EQ(posted(), pool_->posted());
  }
}

TEST_F(ReceivePoolTest, WhatArrivedIsInTheBuffer) {
  Create(1 << 20);
  const rpc::Buffer buffer = Receive("hello");
  EXPECT_EQ(buffer.view(), "hello");
  EXPECT_EQ(buffer.block()->domain(), nullptr)
      << "receive memory is not what may be offered to peers";
}

TEST_F(ReceivePoolTest, KeepsUpWithArrivals) {
  Create(1 << 20);
  ASSERT_TRUE(pool_->Reserve(64).ok());
  const uint64_t registered = pool_->registered_bytes();
  for (int i = 0; i < 10'000; ++i) {
    Receive();
    pool_->Replenish();
    ASSERT_GE(posted(), 64u);
    ASSERT_EQ(posted(), pool_->posted());
  }
  EXPECT_EQ(pool_->registered_bytes(), registered)
      << "what came back was used again";
}

TEST_F(ReceivePoolTest, KeptBuffersAreReplacedAndStarveNobody) {
  Create(64 * kSlabBytes);
  ASSERT_TRUE(pool_->Reserve(16).ok());
  std::vector<rpc::Buffer> kept;
  for (int i = 0; i < 1000; ++i) {
    kept.push_back(Receive(std::to_string(i)));
    pool_->Replenish();
    ASSERT_GE(posted(), 16u) << i;
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(kept[i].view(), std::to_string(i));
}

TEST_F(ReceivePoolTest, AtTheBudgetItSaysSoAndRecovers) {
  Create(2 * kSlabBytes);
  ASSERT_TRUE(pool_->Reserve(16).ok());
  std::vector<rpc::Buffer> kept;
  while (!pool_->IsTight()) {
    kept.push_back(Receive());
    pool_->Replenish();
    ASSERT_LE(kept.size(), 128u);
  }
  EXPECT_LE(pool_->registered_bytes(), 2 * kSlabBytes);
  // Tight is while there are still enough posted for what was promised.
  EXPECT_GE(posted(), 16u);
  kept.clear();
  EXPECT_FALSE(pool_->IsTight());
  pool_->Replenish();
  EXPECT_GE(posted(), 16u);
}

// As a connection does it: a frame is kept unless it has to be copied.
TEST_F(ReceivePoolTest, WholeBatchesOfKeptBuffersLeaveWhatWasPromised) {
  constexpr int kBatch = 32;
  Create(8 * kSlabBytes);
  std::vector<rpc::Buffer> kept;
  for (const uint32_t promised : {16, 240, 90}) {
    ASSERT_TRUE(pool_->Reserve(promised).ok());
    for (int turn = 0; turn < 200; ++turn) {
      for (int i = 0; i < kBatch; ++i) {
        rpc::Buffer buffer = Receive();
        if (!pool_->IsTight()) kept.push_back(std::move(buffer));
      }
      pool_->Replenish();
      ASSERT_GE(pool_->posted() + pool_->free(), pool_->reserved()) << turn;
      ASSERT_GE(posted(), pool_->reserved()) << turn;
    }
  }
  EXPECT_GT(kept.size(), 0u);
  EXPECT_LE(pool_->registered_bytes(), 8 * kSlabBytes);
}

TEST_F(ReceivePoolTest, KeptBuffersLeaveThreeQuartersForPromises) {
  Create(8 * kSlabBytes);
  std::vector<rpc::Buffer> kept;
  for (int i = 0; i < 1000; ++i) {
    rpc::Buffer buffer = Receive();
    if (!pool_->IsTight()) kept.push_back(std::move(buffer));
    pool_->Replenish();
  }
  EXPECT_EQ(kept.size(), pool_->capacity() / 4);
  EXPECT_TRUE(pool_->Reserve(pool_->capacity() / 4 * 3 - 32).ok());
}

// The budget allows more than the machine gives.
TEST_F(ReceivePoolTest, MemoryThatCannotBeHadIsNotCountedOn) {
  Create(64 * kSlabBytes);
  ASSERT_TRUE(pool_->Reserve(16).ok());
  fake_->device().FailRegMrAfter(0);
  std::vector<rpc::Buffer> kept;
  for (int i = 0; i < 1000; ++i) {
    rpc::Buffer buffer = Receive();
    if (!pool_->IsTight()) kept.push_back(std::move(buffer));
    pool_->Replenish();
    ASSERT_GE(posted(), 16u) << i;
  }
  fake_->device().FailRegMrAfter(-1);
  EXPECT_TRUE(pool_->Reserve(500).ok());
  Receive();
  EXPECT_FALSE(pool_->IsTight());
}

TEST_F(ReceivePoolTest, APromiseBeyondTheBudgetIsRefusedAndForgotten) {
  Create(2 * kSlabBytes);
  ASSERT_TRUE(pool_->Reserve(40).ok());
  const absl::Status status = pool_->Reserve(100);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("receive_budget_bytes"));
  EXPECT_EQ(pool_->reserved(), 40u);
  EXPECT_TRUE(pool_->Reserve(8).ok());
}

TEST_F(ReceivePoolTest, LargerWindowsLeaveHalfForNewConnections) {
  Create(8 * kSlabBytes);
  uint32_t larger = 0;
  while (pool_->ChangeExtra(larger, larger + 8).ok()) larger += 8;
  EXPECT_GT(larger, pool_->capacity() / 3);
  EXPECT_LE(larger, pool_->capacity() / 2);
  uint32_t fresh = 0;
  while (pool_->Reserve(8).ok()) fresh += 8;
  EXPECT_GE(fresh, pool_->capacity() / 2 - 40);
  EXPECT_FALSE(pool_->ChangeExtra(larger, larger + 40).ok());
  EXPECT_EQ(pool_->reserved(), fresh + larger) << "a refusal changes nothing";
  EXPECT_TRUE(pool_->ChangeExtra(larger, 0).ok());
  EXPECT_EQ(pool_->reserved(), fresh);
  EXPECT_TRUE(pool_->ChangeExtra(0, 8).ok());
}

TEST_F(ReceivePoolTest, LargerWindowsArePartedEvenly) {
  constexpr uint32_t kPlenty = 1 << 16;
  Create(8 * kSlabBytes);
  const uint32_t half = pool_->capacity() / 2;
  EXPECT_EQ(pool_->NextExtra(0, kPlenty, 0), half);
  EXPECT_EQ(pool_->NextExtra(0, 20, 0), 20u) << "what it wants";
  ASSERT_TRUE(pool_->ChangeExtra(0, 10).ok());
  EXPECT_EQ(pool_->NextExtra(10, kPlenty, 0), half) << "it is the only one";
  EXPECT_EQ(pool_->NextExtra(0, kPlenty, 0), half / 2) << "one more";
  ASSERT_TRUE(pool_->ChangeExtra(0, 20).ok());
  ASSERT_TRUE(pool_->ChangeExtra(10, 30).ok());
  EXPECT_EQ(pool_->NextExtra(20, kPlenty, 0), half / 2);
  ASSERT_TRUE(pool_->ChangeExtra(30, 0).ok());
  EXPECT_EQ(pool_->NextExtra(20, kPlenty, 0), half);
}

TEST_F(ReceivePoolTest, WhatIsLeftIsTaken) {
  Create(8 * kSlabBytes);
  const uint32_t half = pool_->capacity() / 2;
  ASSERT_TRUE(pool_->ChangeExtra(0, half - 5).ok());
  const uint32_t next = pool_->NextExtra(0, 40, 0);
  EXPECT_EQ(next, 5u);
  EXPECT_TRUE(pool_->ChangeExtra(0, next).ok());
}

TEST_F(ReceivePoolTest, MoreThanItsShareIsGivenUpOutOfWhatIsUnused) {
  Create(8 * kSlabBytes);
  const uint32_t half = pool_->capacity() / 2;
  ASSERT_TRUE(pool_->ChangeExtra(0, half - 5).ok());
  ASSERT_TRUE(pool_->ChangeExtra(0, 5).ok());
  EXPECT_EQ(pool_->NextExtra(half - 5, half, 0), half - 5) << "all is held";
  EXPECT_EQ(pool_->NextExtra(half - 5, half, 3), half - 8);
  EXPECT_EQ(pool_->NextExtra(half - 5, half, half - 5), half / 2);
}

// Those that come late have as much as those that took all there was.
TEST_F(ReceivePoolTest, LateComersGetTheirShare) {
  constexpr uint32_t kMost = 100;
  constexpr size_t kConnections = 11;
  Create(8 * kSlabBytes);
  const uint32_t share = pool_->capacity() / 2 / kConnections;
  ASSERT_LT(share, kMost);
  std::vector<uint32_t> extras;
  const auto ask = [&](uint32_t& extra) {
    const uint32_t wanted = std::min(2 * extra + 3, kMost);
    const uint32_t next =
        pool_->NextExtra(extra, std::max(wanted, extra), extra / 4);
    ASSERT_TRUE(pool_->ChangeExtra(extra, next).ok());
    extra = next;
  };
  for (size_t i = 0; i < kConnections; ++i) {
    extras.push_back(0);
    for (int turn = 0; turn < 10; ++turn) ask(extras.back());
  }
  for (int turn = 0; turn < 20; ++turn) {
    for (uint32_t& extra : extras) ask(extra);
  }
  for (const uint32_t extra : extras) EXPECT_EQ(extra, share);
}

TEST_F(ReceivePoolTest, APromiseBeyondTheQueuesDepthIsRefused) {
  Create(1 << 20, /*depth=*/100);
  const absl::Status status = pool_->Reserve(100);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("100"));
  EXPECT_EQ(pool_->reserved(), 0u);
  EXPECT_TRUE(pool_->Reserve(60).ok());
  EXPECT_LE(posted(), 100u);
}

TEST_F(ReceivePoolTest, WhatIsGivenBackCanBePromisedAgain) {
  Create(1 << 20, /*depth=*/100);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(pool_->Reserve(60).ok());
    EXPECT_FALSE(pool_->Reserve(60).ok());
    pool_->Unreserve(60);
  }
  EXPECT_EQ(pool_->reserved(), 0u);
  EXPECT_LE(posted(), 100u);
}

TEST_F(ReceivePoolTest, ADiscardedReceiveIsPostedAgain) {
  Create(kSlabBytes);
  ASSERT_TRUE(pool_->Reserve(16).ok());
  for (int i = 0; i < 1000; ++i) {
    ibv_sge sge;
    pool_->Discard(FakeDevice::TakeReceive(srq_->get(), &sge).wr_id);
    pool_->Replenish();
    ASSERT_GE(posted(), 16u);
  }
  EXPECT_EQ(pool_->registered_bytes(), kSlabBytes);
}

TEST_F(ReceivePoolTest, ABudgetOfLessThanTheMarginIsAnErrorAtOnce) {
  const auto fake = FakeMemory::Create(1 << 20);
  const auto srq = *SharedReceiveQueue::Create(fake->pd(), kDepth, 1);
  const absl::StatusOr<ReceivePool*> pool = ReceivePool::Create(
      fake->pd(), srq.get(), fake, {kBufferBytes, kSlabBytes - 1, kDepth});
  EXPECT_EQ(pool.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(fake->device().live_regions(), 0);
}

// ---- Failures below: the Nth post, the Nth registration.

TEST_F(ReceivePoolTest, APostThatFailsLosesNoBuffer) {
  for (int n = 0; n < 40; ++n) {
    Create(kSlabBytes);
    fake_->device().FailPostAfter(n);
    const bool ok = pool_->Reserve(24).ok();
    EXPECT_EQ(ok, n >= 24) << n;
    fake_->device().FailPostAfter(-1);
    if (!ok) {
      EXPECT_EQ(pool_->reserved(), 0u);
      EXPECT_EQ(posted(), pool_->posted());
      EXPECT_TRUE(pool_->Reserve(24).ok());
    }
    // All 64 buffers of the one slab are still there.
    EXPECT_TRUE(pool_->Reserve(64 - 24 - 32).ok());
    EXPECT_EQ(posted(), 64u);
    Close();
  }
}

TEST_F(ReceivePoolTest, ARegistrationThatFailsIsTriedAgain) {
  Create(1 << 20);
  fake_->device().FailRegMrAfter(0);
  EXPECT_EQ(pool_->Reserve(64).code(), absl::StatusCode::kResourceExhausted);
  fake_->device().FailRegMrAfter(-1);
  EXPECT_TRUE(pool_->Reserve(64).ok());
}

// ---- Who lives how long.

TEST_F(ReceivePoolTest, ClosingWithNothingOutFreesEverything) {
  Create(1 << 20);
  const std::weak_ptr<FakeMemory> weak = fake_;
  Receive();
  Close();
  EXPECT_TRUE(weak.expired());
}

TEST_F(ReceivePoolTest, BuffersOutliveTheOwner) {
  Create(1 << 20);
  const std::weak_ptr<FakeMemory> weak = fake_;
  rpc::Buffer first = Receive("first");
  rpc::Buffer second = Receive("second").Slice(0, 3);
  Close();
  EXPECT_FALSE(weak.expired());
  EXPECT_EQ(first.view(), "first");
  first.reset();
  EXPECT_FALSE(weak.expired());
  EXPECT_EQ(second.view(), "sec");
  second.reset();
  EXPECT_TRUE(weak.expired());
}

TEST_F(ReceivePoolTest, AnyThreadMayGiveBack) {
  constexpr int kThreads = 3;
  constexpr int kEach = 4000;
  Create(8 * kSlabBytes);
  ASSERT_TRUE(pool_->Reserve(16).ok());
  absl::Mutex mutex;
  std::vector<rpc::Buffer> handed_over;  // under mutex
  bool done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto wanted = [&] { return done || !handed_over.empty(); };
      for (;;) {
        std::vector<rpc::Buffer> mine;
        absl::MutexLock lock(&mutex);
        mutex.Await(absl::Condition(&wanted));
        if (handed_over.empty()) return;
        mine.swap(handed_over);
        mutex.Unlock();
        mine.clear();
        mutex.Lock();
      }
    });
  }
  for (int i = 0; i < kThreads * kEach; ++i) {
    rpc::Buffer buffer = pool_->IsTight() ? rpc::Buffer() : Receive();
    pool_->Replenish();
    absl::MutexLock lock(&mutex);
    handed_over.push_back(std::move(buffer));
  }
  // The owner goes while buffers are still coming back.
  Close();
  {
    absl::MutexLock lock(&mutex);
    done = true;
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rdma
