// Goal: buffers of any size that never overlap, within the budget, out of few
// registrations; memory that comes back is used again, as one piece where it
// was one; buffers may outlive everybody and go on any thread.
// Method: over a device of plain memory that counts registrations and fails on
// demand; AddressSanitizer sees what is written beyond an arena.
#include "rdma_transport/registered_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/fake_memory.h"

namespace rdma {
namespace {

using testing::FakeMemory;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr size_t kPage = RegisteredMemory::kPageBytes;

rpc::Buffer Take(FakeMemory& fake, size_t bytes) {
  absl::StatusOr<rpc::Buffer> buffer = fake.memory().Allocate(bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return buffer.ok() ? *std::move(buffer) : rpc::Buffer();
}

TEST(RegisteredMemoryTest, NothingIsRegisteredBeforeItIsWanted) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  EXPECT_EQ(fake->device().live_regions(), 0);
  EXPECT_EQ(fake->memory().registered_bytes(), 0u);
  EXPECT_TRUE(Take(*fake, 0).empty());
  EXPECT_EQ(fake->device().live_regions(), 0);
}

TEST(RegisteredMemoryTest, EverySizeIsWholeWritableAndItsOwn) {
  const auto fake = FakeMemory::Create(256 * kMiB);
  std::vector<rpc::Buffer> held;
  std::map<const std::byte*, const std::byte*> ranges;
  for (const size_t edge :
       {size_t{1}, size_t{1024}, size_t{2048}, size_t{65'536}, size_t{1} << 19,
        size_t{1} << 20, (size_t{1} << 20) + kPage, size_t{5} << 20}) {
    for (size_t bytes = std::max<size_t>(edge, 2) - 1; bytes <= edge + 1;
         ++bytes) {
      rpc::Buffer buffer = Take(*fake, bytes);
      ASSERT_EQ(buffer.size(), bytes);
      EXPECT_TRUE(fake->memory().Owns(buffer));
      std::memset(buffer.mutable_data(), 0xab, bytes);
      const ibv_mr* const mr = RegisteredMemory::MrOf(buffer);
      EXPECT_GE(buffer.data(), mr->addr);
      EXPECT_LE(buffer.data() + bytes,
                static_cast<std::byte*>(mr->addr) + mr->length);
      EXPECT_EQ(RegisteredMemory::LkeyOf(buffer), mr->lkey);
      // With what is in front of it, no other buffer's.
      const std::byte* const begin = buffer.data() - buffer.headroom();
      const auto after = ranges.upper_bound(begin);
      if (after != ranges.end()) {
        EXPECT_LE(buffer.data() + bytes, after->first);
      }
      if (after != ranges.begin()) {
        EXPECT_LE(std::prev(after)->second, begin);
      }
      ranges[begin] = buffer.data() + bytes;
      held.push_back(std::move(buffer));
    }
  }
}

TEST(RegisteredMemoryTest, SmallBuffersHaveHeadroomAndLargeOnesWholePages) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  rpc::Buffer small = Take(*fake, RegisteredMemory::kLargestClassBytes);
  EXPECT_EQ(small.headroom(), RegisteredMemory::kHeadroomBytes);
  std::memset(small.mutable_data() - small.headroom(), 1, small.headroom());
  const rpc::Buffer large =
      Take(*fake, RegisteredMemory::kLargestClassBytes + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.data()) % 4096, 0u);
}

TEST(RegisteredMemoryTest, OneRegistrationServesThousands) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  std::vector<rpc::Buffer> held;
  for (int i = 0; i < 3000; ++i) held.push_back(Take(*fake, 1000));
  EXPECT_EQ(fake->device().live_regions(), 1);
}

TEST(RegisteredMemoryTest, MemoryOfOthersIsNotItsOwn) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const auto other = FakeMemory::Create(64 * kMiB);
  EXPECT_FALSE(fake->memory().Owns(rpc::Buffer()));
  EXPECT_FALSE(fake->memory().Owns(rpc::Buffer::FromHeap(10)));
  EXPECT_FALSE(fake->memory().Owns(Take(*other, 10)));
}

// ---- Reuse.

TEST(RegisteredMemoryTest, WhatComesBackIsUsedAgain) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  for (const size_t bytes : {size_t{100}, size_t{100'000}, size_t{3'000'000}}) {
    Take(*fake, bytes).reset();
    const uint64_t before = fake->memory().registered_bytes();
    for (int i = 0; i < 1000; ++i) {
      rpc::Buffer buffer = Take(*fake, bytes);
      std::memset(buffer.mutable_data(), i, 16);
    }
    EXPECT_EQ(fake->memory().registered_bytes(), before) << bytes;
  }
}

TEST(RegisteredMemoryTest, FreedNeighboursBecomeOnePiece) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const auto fake = FakeMemory::Create(64 * kMiB);
    // Twenty runs that fill an arena of their own kind.
    Take(*fake, 40 * kMiB).reset();
    const uint64_t registered = fake->memory().registered_bytes();
    std::vector<rpc::Buffer> held;
    for (int i = 0; i < 20; ++i) held.push_back(Take(*fake, 2 * kMiB));
    ASSERT_EQ(fake->memory().registered_bytes(), registered);
    std::shuffle(held.begin(), held.end(), random);
    held.clear();
    EXPECT_EQ(Take(*fake, 40 * kMiB).size(), 40 * kMiB);
    EXPECT_EQ(fake->memory().registered_bytes(), registered);
  }
}

// A buffer with what is in front of it, all of one byte.
rpc::Buffer TakeFilled(FakeMemory& fake, size_t bytes, int byte) {
  rpc::Buffer buffer = Take(fake, bytes);
  std::memset(buffer.mutable_data() - buffer.headroom(), byte,
              buffer.headroom() + bytes);
  return buffer;
}

bool IsFilled(const std::byte* begin, size_t bytes, int byte) {
  return std::all_of(begin, begin + bytes,
                     [byte](std::byte b) { return b == std::byte(byte); });
}

TEST(RegisteredMemoryTest, TakingBackWritesToNobodyElsesMemory) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  for (const size_t bytes : {size_t{1}, size_t{1500}, size_t{8192},
                             size_t{10'000}, size_t{16'384}}) {
    SCOPED_TRACE(bytes);
    std::vector<rpc::Buffer> neighbours;
    std::vector<rpc::Buffer> taken_back;
    for (int i = 0; i < 32; ++i) {
      rpc::Buffer buffer = TakeFilled(*fake, bytes, 0xab);
      (i % 2 == 0 ? neighbours : taken_back).push_back(std::move(buffer));
    }
    for (rpc::Buffer& buffer : taken_back) {
      fake->memory().TakeBack(std::move(buffer));
    }
    for (const rpc::Buffer& buffer : neighbours) {
      EXPECT_TRUE(IsFilled(buffer.data() - buffer.headroom(),
                           buffer.headroom() + bytes, 0xab));
    }
  }
}

TEST(RegisteredMemoryTest, WhatOthersKeepIsNotTakenBack) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const rpc::Buffer kept = TakeFilled(*fake, 8192, 0xab);
  fake->memory().TakeBack(kept);
  fake->memory().TakeBack(kept.Slice(100, 1000));
  EXPECT_TRUE(IsFilled(kept.data() - kept.headroom(),
                       kept.headroom() + kept.size(), 0xab));
}

TEST(RegisteredMemoryTest, WhatIsTakenBackIsTheNextToBeUsed) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  rpc::Buffer buffer = TakeFilled(*fake, 8192, 0xab);
  const std::byte* const data = buffer.data();
  const size_t headroom = buffer.headroom();
  fake->memory().TakeBack(std::move(buffer));
  // Written to, at least where the first buffer's way is timed, or else it
  // could not be told; cache_lines_test has the rest.
  EXPECT_FALSE(IsFilled(data - headroom, headroom + 8192, 0xab));
  EXPECT_EQ(Take(*fake, 8192).data(), data);
}

TEST(RegisteredMemoryTest, SlicesKeepTheWholeAlive) {
  const auto fake = FakeMemory::Create(8 * kMiB);
  rpc::Buffer slice;
  {
    const rpc::Buffer whole = Take(*fake, 1000);
    slice = whole.Slice(10, 20);
  }
  EXPECT_TRUE(fake->memory().Owns(slice));
  std::memset(slice.mutable_data(), 1, slice.size());
  rpc::Buffer other = Take(*fake, 1000);
  EXPECT_TRUE(other.data() + other.size() <= slice.data() ||
              slice.data() + slice.size() <= other.data());
}

// ---- The budget.

TEST(RegisteredMemoryTest, TheBudgetIsKeptAndNamed) {
  const auto fake = FakeMemory::Create(16 * kMiB);
  std::vector<rpc::Buffer> held;
  absl::Status status;
  for (;;) {
    absl::StatusOr<rpc::Buffer> buffer = fake->memory().Allocate(kMiB + 1);
    if (!buffer.ok()) {
      status = buffer.status();
      break;
    }
    held.push_back(*std::move(buffer));
    ASSERT_LE(fake->memory().registered_bytes(), 16 * kMiB);
    ASSERT_LE(held.size(), 16u);
  }
  EXPECT_GE(held.size(), 13u) << "the budget is there to be used";
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory_budget_bytes"));
  held.pop_back();
  EXPECT_EQ(Take(*fake, kMiB + 1).size(), kMiB + 1);
}

TEST(RegisteredMemoryTest, MoreThanTheBudgetIsRefusedAtOnce) {
  const auto fake = FakeMemory::Create(16 * kMiB);
  for (const size_t bytes :
       {size_t{16 * kMiB} + 1, size_t{1} << 40, SIZE_MAX / 2}) {
    EXPECT_EQ(fake->memory().Allocate(bytes).status().code(),
              absl::StatusCode::kResourceExhausted)
        << bytes;
  }
  EXPECT_EQ(fake->device().live_regions(), 0);
}

TEST(RegisteredMemoryTest, ABudgetSmallerThanAnArenaIsEnoughForSmallBuffers) {
  const auto fake = FakeMemory::Create(kMiB);
  EXPECT_EQ(Take(*fake, 1000).size(), 1000u);
  EXPECT_LE(fake->memory().registered_bytes(), kMiB);
}

TEST(RegisteredMemoryTest, FreeArenasMakeWayForWhatIsWantedNow) {
  const auto fake = FakeMemory::Create(16 * kMiB);
  { const rpc::Buffer first = Take(*fake, 4 * kMiB); }
  const rpc::Buffer second = Take(*fake, 14 * kMiB);
  EXPECT_EQ(second.size(), 14 * kMiB);
  EXPECT_LE(fake->memory().registered_bytes(), 16 * kMiB);
}

// Each class of sizes keeps an empty slab for the next time; not at the price
// of a refusal.
TEST(RegisteredMemoryTest, WhatIsKeptForTheNextTimeMakesWayToo) {
  const auto fake = FakeMemory::Create(16 * kMiB);
  for (size_t bytes = 1; bytes <= kMiB; bytes *= 2) Take(*fake, bytes).reset();
  EXPECT_EQ(Take(*fake, 16 * kMiB).size(), 16 * kMiB);
  EXPECT_EQ(Take(*fake, 1).size(), 1u);
}

// ---- Failures below.

TEST(RegisteredMemoryTest, AFailedRegistrationFailsThatRequestOnly) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  fake->device().FailRegMrAfter(0);
  const absl::Status status = fake->memory().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ibv_reg_mr"));
  EXPECT_EQ(fake->memory().registered_bytes(), 0u);
  EXPECT_EQ(fake->device().live_bytes(), 0) << "memory without a region";
  fake->device().FailRegMrAfter(-1);
  EXPECT_EQ(Take(*fake, 1000).size(), 1000u);
}

// ---- Who lives how long.

TEST(RegisteredMemoryTest, ItsOwnerHearsWhenItIsUnused) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  RegisteredMemory& memory = fake->memory();
  int unused = 0;
  memory.WhenUnused([&unused] { ++unused; });
  EXPECT_EQ(unused, 1) << "nothing was ever used";
  rpc::Buffer one = Take(*fake, 10);
  rpc::Buffer two = Take(*fake, 10 * kMiB);
  memory.WhenUnused([&unused] { ++unused; });
  one.reset();
  EXPECT_EQ(unused, 1);
  two.reset();
  EXPECT_EQ(unused, 2);
  one = Take(*fake, 10);
  one.reset();
  EXPECT_EQ(unused, 2) << "it is said once";
}

TEST(RegisteredMemoryTest, ItsOwnerMayGoOnUsingIt) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  RegisteredMemory& memory = fake->memory();
  EXPECT_FALSE(memory.StayInUse()) << "nobody wanted it to end";
  bool unused = false;
  rpc::Buffer buffer = Take(*fake, 10);
  memory.WhenUnused([&unused] { unused = true; });
  EXPECT_TRUE(memory.StayInUse());
  buffer.reset();
  EXPECT_FALSE(unused);
  memory.WhenUnused([&unused] { unused = true; });
  EXPECT_TRUE(unused);
  EXPECT_FALSE(memory.StayInUse()) << "too late";
}

TEST(RegisteredMemoryTest, ABufferMayBeTheLastThatIsLeft) {
  for (const size_t bytes : {size_t{10}, size_t{10 * kMiB}}) {
    auto fake = FakeMemory::Create(64 * kMiB);
    const std::shared_ptr<const bool> destroyed = fake->destroyed();
    rpc::Buffer buffer = Take(*fake, bytes);
    fake.reset();
    ASSERT_FALSE(*destroyed);
    std::memset(buffer.mutable_data(), 1, bytes);
    std::thread([last = std::move(buffer)]() mutable { last.reset(); }).join();
    EXPECT_TRUE(*destroyed);
  }
}

// ---- All at once.

// Registering takes milliseconds for each megabyte.
TEST(RegisteredMemoryTest, WhileOneThreadRegistersOthersGoOn) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  const rpc::Buffer first = Take(*fake, 1000);
  absl::Notification registering;
  absl::Notification go_on;
  fake->device().OnRegMr([&] {
    registering.Notify();
    go_on.WaitForNotification();
  });
  rpc::Buffer large;
  std::thread grows([&] { large = Take(*fake, 32 * kMiB); });
  registering.WaitForNotification();
  // Of what there is: small ones, and a run.
  std::vector<rpc::Buffer> held;
  for (int i = 0; i < 100; ++i) held.push_back(Take(*fake, 1000));
  held.push_back(Take(*fake, 2 * kMiB));
  held.clear();
  EXPECT_TRUE(large.empty());
  go_on.Notify();
  grows.join();
  EXPECT_EQ(large.size(), 32 * kMiB);
}

TEST(RegisteredMemoryTest, ThreadsThatNeedMoreAllGetIt) {
  const auto fake = FakeMemory::Create(256 * kMiB);
  fake->device().OnRegMr([] { absl::SleepFor(absl::Milliseconds(5)); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&fake] {
      std::vector<rpc::Buffer> held;
      for (size_t bytes = kMiB; bytes <= 8 * kMiB; bytes *= 2) {
        held.push_back(Take(*fake, bytes));
        EXPECT_EQ(held.back().size(), bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(fake->memory().registered_bytes(), 256 * kMiB);
}

TEST(RegisteredMemoryTest, AFailedRegistrationLeavesNobodyWaiting) {
  const auto fake = FakeMemory::Create(64 * kMiB);
  fake->device().OnRegMr([] { absl::SleepFor(absl::Milliseconds(5)); });
  fake->device().FailRegMrAfter(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&fake] {
      EXPECT_EQ(fake->memory().Allocate(kMiB).status().code(),
                absl::StatusCode::kResourceExhausted);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake->memory().registered_bytes(), 0u);
}

TEST(RegisteredMemoryTest, ThreadsTakeAndGiveBackEachOthersBuffers) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 4000;
  const auto fake = FakeMemory::Create(64 * kMiB);
  absl::Mutex mutex;
  std::vector<rpc::Buffer> exchange;  // under mutex
  const auto work = [&](uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<rpc::Buffer> mine;
    for (int step = 0; step < kSteps; ++step) {
      if (random() % 2 == 0) {
        const size_t bytes = 1 + (random() >> (8 + random() % 22));
        absl::StatusOr<rpc::Buffer> buffer = fake->memory().Allocate(bytes);
        if (!buffer.ok()) {
          mine.clear();
          continue;
        }
        // First and last byte hold what the size was: nobody else writes here.
        const auto mark = static_cast<std::byte>(bytes % 251);
        buffer->mutable_data()[0] = mark;
        buffer->mutable_data()[bytes - 1] = mark;
        mine.push_back(*std::move(buffer));
      } else if (!mine.empty()) {
        rpc::Buffer buffer = std::move(mine.back());
        mine.pop_back();
        const auto mark = static_cast<std::byte>(buffer.size() % 251);
        ASSERT_EQ(buffer.data()[0], mark);
        ASSERT_EQ(buffer.data()[buffer.size() - 1], mark);
        absl::MutexLock lock(&mutex);
        exchange.push_back(std::move(buffer));
        if (exchange.size() > 8) {
          exchange.erase(exchange.begin() + random() % exchange.size());
        }
      }
      if (mine.size() > 20) mine.clear();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(work, static_cast<uint32_t>(i));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(fake->memory().registered_bytes(), 64 * kMiB);
}

}  // namespace
}  // namespace rdma
