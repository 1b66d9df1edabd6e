// Goal: one thread at a time, everything handed on from one to the next, and no
// work left behind by "release, then look" against "leave, then try"; with all
// threads alike, and with one that owns the turnstile.
// Method: plain variables that the turnstile alone protects, with several
// threads (ThreadSanitizer is the judge), and the poller's protocol in
// miniature. Where it matters which of two comes first, each of many rounds has
// a new turnstile, whose owner and another thread meet after a random moment;
// without the fence against the owner, several of these tests fail.
#include "rdma_transport/turnstile.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/asymmetric_fence.h"

namespace rdma {
namespace {

constexpr int kThreads = 4;

// What a loop needs to take its time.
void CompilerFence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Soon after `done` is true; where the other thread has no CPU, it gets this
// one.
template <typename Done>
void SpinUntil(Done done) {
  for (int spins = 0; !done(); ++spins) {
    if (spins > 100) std::this_thread::yield();
  }
}

template <typename Function>
void InThreads(Function function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(function);
  for (std::thread& thread : threads) thread.join();
}

template <typename Function>
void InAnotherThread(Function function) {
  std::thread(function).join();
}

// Of one that is open: whoever enters holds it, and nobody else gets in.
void ExpectHeldByWhoEnters(Turnstile& turnstile) {
  EXPECT_TRUE(turnstile.IsOpen());
  EXPECT_FALSE(turnstile.HeldByMe());
  ASSERT_TRUE(turnstile.TryEnter());
  EXPECT_FALSE(turnstile.IsOpen());
  EXPECT_TRUE(turnstile.HeldByMe());
  EXPECT_FALSE(turnstile.TryEnter()) << "not even by its holder";
  InAnotherThread([&turnstile] {
    EXPECT_FALSE(turnstile.IsOpen());
    EXPECT_FALSE(turnstile.HeldByMe());
    EXPECT_FALSE(turnstile.TryEnter());
    EXPECT_FALSE(turnstile.TryEnter()) << "nor by asking twice";
  });
  EXPECT_TRUE(turnstile.HeldByMe());
  turnstile.Release();
  EXPECT_TRUE(turnstile.IsOpen());
  EXPECT_FALSE(turnstile.HeldByMe());
}

TEST(TurnstileTest, IsHeldByWhoEntered) {
  Turnstile turnstile;
  ExpectHeldByWhoEnters(turnstile);
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

TEST(TurnstileTest, ObserversSeeWhetherItIsHeld) {
  Turnstile turnstile;
  EXPECT_FALSE(turnstile.LooksHeld());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(turnstile.TryEnter());
    EXPECT_TRUE(turnstile.LooksHeld());
    turnstile.Release();
    EXPECT_FALSE(turnstile.LooksHeld());
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

// ---- With an owner.

// Enough for this thread to own it, unless others enter.
void Own(Turnstile& turnstile) {
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(turnstile.TryEnter());
    turnstile.Release();
  }
}

// Lets an owner's and another thread's part of a round, which take the round's
// own data, run at about the same time, on a turnstile that the first one owns.
// The owner has so many passages in a round, as the other one needs a while to
// revoke what it owns.
constexpr int kPassages = 100;
template <typename Data, typename Owners, typename Others, typename Check>
void LetThemMeet(Owners owners, Others others, Check check) {
  constexpr int kRounds = 4'000;
  const absl::Time end = absl::Now() + absl::Seconds(2);
  std::vector<std::unique_ptr<Data>> rounds(kRounds);
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::atomic<bool> over{false};
  std::thread other([&] {
    std::minstd_rand random(1);
    for (int round = 0; round < kRounds; ++round) {
      SpinUntil([&] { return begun > round || over; });
      if (over) return;
      for (uint32_t spins = random() % 64; spins > 0; --spins) CompilerFence();
      others(*rounds[static_cast<size_t>(round)]);
      ended = round + 1;
    }
  });
  std::minstd_rand random(2);
  for (int round = 0; round < kRounds && absl::Now() < end; ++round) {
    auto& data = rounds[static_cast<size_t>(round)];
    data = std::make_unique<Data>();
    Own(data->turnstile);
    begun = round + 1;
    for (uint32_t spins = random() % 64; spins > 0; --spins) CompilerFence();
    owners(*data);
    SpinUntil([&] { return ended > round; });
    check(*data);
    data.reset();
  }
  over = true;
  other.join();
}

TEST(TurnstileTest, AnOwnerIsInsideOrNot) {
  Turnstile turnstile;
  Own(turnstile);
  ExpectHeldByWhoEnters(turnstile);
  ASSERT_TRUE(turnstile.TryEnter()) << "which was revoked";
  turnstile.Release();
}

TEST(TurnstileTest, AnOwnerIsToldThatAnotherThreadIsInside) {
  Turnstile turnstile;
  Own(turnstile);
  std::atomic<int> step{0};
  std::thread other([&] {
    EXPECT_TRUE(turnstile.IsOpen());
    EXPECT_TRUE(turnstile.TryEnter());
    step = 1;
    SpinUntil([&] { return step == 2; });
    turnstile.Release();
  });
  SpinUntil([&] { return step == 1; });
  EXPECT_FALSE(turnstile.IsOpen());
  EXPECT_FALSE(turnstile.HeldByMe());
  EXPECT_FALSE(turnstile.TryEnter());
  step = 2;
  other.join();
  EXPECT_TRUE(turnstile.IsOpen());
  Own(turnstile);
}

TEST(TurnstileTest, ObserversSeeWhetherAnOwnerIsInside) {
  Turnstile turnstile;
  Own(turnstile);
  const auto look = [&](bool held) {
    InAnotherThread([&] { EXPECT_EQ(turnstile.LooksHeld(), held); });
  };
  look(false);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(turnstile.TryEnter());
    look(true);
    turnstile.Release();
    look(false);
  }
  // Also while it is inside of one that is not its own any more.
  ASSERT_TRUE(turnstile.TryEnter());
  InAnotherThread([&] { EXPECT_FALSE(turnstile.TryEnter()); });
  look(true);
  turnstile.Release();
  look(false);
}

TEST(TurnstileTest, ManyThreadsOwnItInTurns) {
  Turnstile turnstile;
  int64_t entered = 0;
  for (int i = 0; i < 20; ++i) {
    InAnotherThread([&] {
      Own(turnstile);
      ASSERT_TRUE(turnstile.TryEnter());
      ++entered;
      turnstile.Release();
    });
  }
  ASSERT_TRUE(turnstile.TryEnter());
  EXPECT_EQ(entered, 20);
  turnstile.Release();
}

// Each does in its turn, whoever did before.
TEST(TurnstileTest, EveryThreadOfAPoolMayOwnIt) {
  if (!AsymmetricFence::Available(AsymmetricFence::Reach::kProcess)) {
    GTEST_SKIP() << "no membarrier(2)";
  }
  constexpr int kPool = 20;
  constexpr int kMostEntries = 1 << 18;
  Turnstile turnstile;
  std::atomic<int> turn{0};
  int owned = 0;
  std::vector<std::thread> pool;
  for (int i = 0; i < kPool; ++i) {
    pool.emplace_back([&, i] {
      SpinUntil([&] { return turn == i; });
      for (int entries = 0; entries < kMostEntries && !turnstile.IsMine();
           ++entries) {
        EXPECT_TRUE(turnstile.TryEnter());
        turnstile.Release();
      }
      owned += turnstile.IsMine();
      ++turn;
      // One that ended would leave its place to the next.
      SpinUntil([&] { return turn == kPool; });
    });
  }
  for (std::thread& thread : pool) thread.join();
  EXPECT_EQ(owned, kPool);
}

TEST(TurnstileTest, WhatAnOwnerWroteAnotherHolderSees) {
  constexpr int64_t kEntriesOfOther = 500;
  Turnstile turnstile;
  int64_t entered = 0;  // no atomic: the turnstile's
  int64_t entries_of_owner = 0;
  std::atomic<bool> over{false};
  std::thread other([&] {
    for (int64_t i = 0; i < kEntriesOfOther; ++i) {
      for (int spins = 0; spins < 50'000; ++spins) CompilerFence();
      SpinUntil([&] { return turnstile.TryEnter(); });
      ++entered;
      turnstile.Release();
    }
    over = true;
  });
  while (!over) {
    if (!turnstile.TryEnter()) continue;
    ++entered;
    ++entries_of_owner;
    turnstile.Release();
  }
  other.join();
  ASSERT_TRUE(turnstile.TryEnter());
  EXPECT_EQ(entered, entries_of_owner + kEntriesOfOther);
  turnstile.Release();
}

struct InsideRound {
  Turnstile turnstile;
  std::atomic<int> inside{0};
  bool met = false;

  void Enter() {
    if (!turnstile.TryEnter()) return;
    if (inside.fetch_add(1, std::memory_order_relaxed) != 0) met = true;
    for (int i = 0; i < 10; ++i) CompilerFence();
    inside.fetch_sub(1, std::memory_order_relaxed);
    turnstile.Release();
  }
};

TEST(TurnstileTest, AnOwnerAndAnotherThreadAreNotInsideTogether) {
  LetThemMeet<InsideRound>(
      [](InsideRound& round) {
        for (int i = 0; i < kPassages; ++i) round.Enter();
      },
      [](InsideRound& round) { round.Enter(); },
      [](const InsideRound& round) {
        EXPECT_FALSE(round.met);
        EXPECT_TRUE(round.turnstile.IsOpen());
      });
}

struct WorkRound {
  Turnstile turnstile;
  std::atomic<int> left{0};
  int done = 0;

  // The poller's OpenForOthers.
  void Serve() {
    for (;;) {
      done += left.exchange(0, std::memory_order_acquire);
      turnstile.Release();
      if (left.load(std::memory_order_seq_cst) == 0) return;
      if (!turnstile.TryEnter()) return;
    }
  }
  void Leave() {
    left.fetch_add(1, std::memory_order_seq_cst);
    if (turnstile.TryEnter()) Serve();
  }
};

TEST(TurnstileTest, NoWorkIsLeftBehindByAnOwner) {
  LetThemMeet<WorkRound>(
      [](WorkRound& round) {
        for (int i = 0; i < kPassages; ++i) {
          if (round.turnstile.TryEnter()) round.Serve();
        }
      },
      [](WorkRound& round) { round.Leave(); },
      [](const WorkRound& round) { EXPECT_EQ(round.done, 1); });
}

// All leave some and try: where two were turned away, each by the other, it
// would stay.
TEST(TurnstileTest, NoWorkIsLeftBehindByAnOwnerThatLeavesSomeItself) {
  LetThemMeet<WorkRound>(
      [](WorkRound& round) {
        for (int i = 0; i < kPassages; ++i) round.Leave();
      },
      [](WorkRound& round) { round.Leave(); },
      [](const WorkRound& round) { EXPECT_EQ(round.done, kPassages + 1); });
}

// Two others, of which the second finds the first one about to revoke.
TEST(TurnstileTest, NoWorkIsLeftBehindAmongSeveral) {
  LetThemMeet<WorkRound>(
      [](WorkRound& round) {
        for (int i = 0; i < kPassages; ++i) round.Leave();
      },
      [](WorkRound& round) {
        std::thread second([&round] { round.Leave(); });
        for (int i = 0; i < 10; ++i) round.Leave();
        second.join();
      },
      [](const WorkRound& round) {
        EXPECT_EQ(round.done, kPassages + 11);
        EXPECT_TRUE(round.turnstile.IsOpen());
      });
}

struct WaitRound {
  Turnstile turnstile;
  std::atomic<bool> waits{false};
  bool would_sleep = false;
  bool nudged = false;
};

// The poller's Leave against WaitForTurn.
TEST(TurnstileTest, AWaiterSeesItOpenOrIsSeen) {
  LetThemMeet<WaitRound>(
      [](WaitRound& round) {
        for (int i = 0; i < kPassages; ++i) {
          ASSERT_TRUE(round.turnstile.TryEnter());
          round.turnstile.Release();
          round.nudged = round.waits.load(std::memory_order_seq_cst);
        }
      },
      [](WaitRound& round) {
        round.waits.store(true, std::memory_order_seq_cst);
        round.would_sleep = !round.turnstile.IsOpen();
      },
      [](const WaitRound& round) {
        EXPECT_TRUE(!round.would_sleep || round.nudged);
      });
}

}  // namespace
}  // namespace rdma
