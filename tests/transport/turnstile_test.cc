// Goal: one thread at a time, everything handed on from one to the next, and no
// work left behind by "release, then look" against "leave, then try".
// Method: plain variables that the turnstile alone protects, with several
// threads (ThreadSanitizer is the judge), and the poller's protocol in
// miniature.
#include "rdma_transport/turnstile.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr int kThreads = 4;

template <typename Function>
void InThreads(Function function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(function);
  for (std::thread& thread : threads) thread.join();
}

TEST(TurnstileTest, IsHeldByWhoEntered) {
  Turnstile turnstile;
  EXPECT_TRUE(turnstile.IsOpen());
  EXPECT_FALSE(turnstile.HeldByMe());
  ASSERT_TRUE(turnstile.TryEnter());
  EXPECT_FALSE(turnstile.IsOpen());
  EXPECT_TRUE(turnstile.HeldByMe());
  EXPECT_FALSE(turnstile.TryEnter()) << "not even by its holder";
  std::thread([&turnstile] {
    EXPECT_FALSE(turnstile.HeldByMe());
    EXPECT_FALSE(turnstile.TryEnter());
  }).join();
  turnstile.Release();
  EXPECT_TRUE(turnstile.IsOpen());
  EXPECT_FALSE(turnstile.HeldByMe());
}

TEST(TurnstileTest, TwoTurnstilesDoNotMindEachOther) {
  Turnstile one, other;
  ASSERT_TRUE(one.TryEnter());
  EXPECT_FALSE(other.HeldByMe());
  ASSERT_TRUE(other.TryEnter());
  one.Release();
  EXPECT_TRUE(other.HeldByMe());
  other.Release();
}

TEST(TurnstileTest, ObserversSeeEveryPassage) {
  Turnstile turnstile;
  uint64_t seen = turnstile.Observe();
  EXPECT_FALSE(Turnstile::IsHeld(seen));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(turnstile.TryEnter());
    EXPECT_NE(turnstile.Observe(), seen);
    seen = turnstile.Observe();
    EXPECT_TRUE(Turnstile::IsHeld(seen));
    turnstile.Release();
    EXPECT_NE(turnstile.Observe(), seen);
    seen = turnstile.Observe();
    EXPECT_FALSE(Turnstile::IsHeld(seen));
  }
}

TEST(TurnstileTest, WhatOneHolderWroteTheNextOneSees) {
  Turnstile turnstile;
  int64_t entered = 0;  // no atomic: the turnstile's
  std::atomic<int64_t> expected{0};
  InThreads([&] {
    for (int i = 0; i < 50'000; ++i) {
      if (!turnstile.TryEnter()) {
        std::this_thread::yield();
        continue;
      }
      ++entered;
      expected.fetch_add(1, std::memory_order_relaxed);
      EXPECT_TRUE(turnstile.HeldByMe());
      turnstile.Release();
      EXPECT_FALSE(turnstile.HeldByMe());
    }
  });
  ASSERT_TRUE(turnstile.TryEnter());
  EXPECT_EQ(entered, expected.load());
  turnstile.Release();
}

// Who leaves work and finds the turnstile held relies on the holder to see it.
TEST(TurnstileTest, NoWorkIsLeftBehind) {
  constexpr int kRounds = 20'000;
  for (int repetition = 0; repetition < 5; ++repetition) {
    Turnstile turnstile;
    std::atomic<int> left{0};  // work that was left and not done
    int64_t done = 0;
    const auto serve = [&] {
      for (;;) {
        done += left.exchange(0, std::memory_order_acquire);
        turnstile.Release();
        if (left.load(std::memory_order_seq_cst) == 0) return;
        if (!turnstile.TryEnter()) return;
      }
    };
    InThreads([&] {
      for (int i = 0; i < kRounds; ++i) {
        left.fetch_add(1, std::memory_order_seq_cst);
        if (turnstile.TryEnter()) serve();
      }
    });
    ASSERT_EQ(left.load(), 0) << "somebody relied on a holder that had gone";
    ASSERT_TRUE(turnstile.TryEnter());
    EXPECT_EQ(done, int64_t{kThreads} * kRounds);
    turnstile.Release();
  }
}

}  // namespace
}  // namespace rdma
