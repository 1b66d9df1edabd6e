// Goal: a CompletionQueue gives each event once, in order, to one thread, and
// ends for all that wait when the last one was taken. Method: operations that
// are done when the test says so, one thread and several.
#include "rpc/completion_queue.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/logging.h"

namespace rpc {
namespace {

using NextStatus = CompletionQueue::NextStatus;

// An operation: its tag is itself.
class Operation final : public internal::CompletionQueueTag {
 public:
  using Finalize = std::function<bool(void** tag, bool* ok)>;

  Operation() = default;
  // `finalize` may do something else than give the tag.
  explicit Operation(Finalize finalize) : finalize_(std::move(finalize)) {}

  bool FinalizeResult(void** tag, bool* ok) override {
    *tag = this;
    // It may destroy this.
    const Finalize finalize = finalize_;
    return finalize == nullptr || finalize(tag, ok);
  }

 private:
  Finalize finalize_;
};

// What Next gave.
struct Taken {
  NextStatus status;
  void* tag = nullptr;
  bool ok = false;
};

template <class T>
Taken AsyncNext(CompletionQueue& queue, const T& deadline) {
  Taken taken = {};
  taken.status = queue.AsyncNext(&taken.tag, &taken.ok, deadline);
  return taken;
}
Taken Poll(CompletionQueue& queue) {
  return AsyncNext(queue, absl::InfinitePast());
}

::testing::AssertionResult Gives(const Taken& taken, const Operation& operation,
                                 bool ok = true) {
  if (taken.status != CompletionQueue::GOT_EVENT) {
    return ::testing::AssertionFailure() << "no event, but " << taken.status;
  }
  if (taken.tag != &operation) {
    return ::testing::AssertionFailure() << "another operation's event";
  }
  if (taken.ok != ok) return ::testing::AssertionFailure() << "ok " << taken.ok;
  return ::testing::AssertionSuccess();
}

class CompletionQueueTest : public ::testing::Test {
 protected:
  void BeginAndPush(Operation& operation, bool ok = true) {
    ASSERT_TRUE(queue_.Begin());
    queue_.Push(&operation, ok);
  }

  CompletionQueue queue_;
};

// ---- Events.

TEST_F(CompletionQueueTest, EventsComeInTheOrderInWhichTheyAreDone) {
  std::deque<Operation> operations(5);
  for (size_t i = 0; i < operations.size(); ++i) {
    ASSERT_TRUE(queue_.Begin());
  }
  for (const size_t i : {3u, 0u, 4u}) queue_.Push(&operations[i], i != 0);
  EXPECT_TRUE(Gives(Poll(queue_), operations[3]));
  queue_.Push(&operations[1], true);
  EXPECT_TRUE(Gives(Poll(queue_), operations[0], /*ok=*/false));
  EXPECT_TRUE(Gives(Poll(queue_), operations[4]));
  EXPECT_TRUE(Gives(Poll(queue_), operations[1]));
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::TIMEOUT);
  queue_.Push(&operations[2], false);
  EXPECT_TRUE(Gives(Poll(queue_), operations[2], /*ok=*/false));
}

TEST_F(CompletionQueueTest, AnOperationCanBeBegunAgainWhenItsEventIsTaken) {
  Operation operation;
  for (const bool ok : {true, false, true}) {
    BeginAndPush(operation, ok);
    EXPECT_TRUE(Gives(Poll(queue_), operation, ok));
  }
}

TEST_F(CompletionQueueTest, TheThreadThatTakesAnEventDoesTheRest) {
  std::thread::id thread;
  int other = 0;
  Operation operation([&](void** tag, bool* ok) {
    thread = std::this_thread::get_id();
    *tag = &other;
    *ok = !*ok;
    return true;
  });
  ASSERT_TRUE(queue_.Begin());
  std::thread([&] { queue_.Push(&operation, false); }).join();
  const Taken taken = Poll(queue_);
  EXPECT_EQ(taken.status, CompletionQueue::GOT_EVENT);
  EXPECT_EQ(taken.tag, &other);
  EXPECT_TRUE(taken.ok);
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST_F(CompletionQueueTest, AnEventMayDestroyItsOperation) {
  std::unique_ptr<Operation> operation;
  operation = std::make_unique<Operation>([&](void** tag, bool*) {
    operation.reset();
    *tag = this;
    return true;
  });
  BeginAndPush(*operation);
  EXPECT_EQ(Poll(queue_).tag, this);
  EXPECT_EQ(operation, nullptr);
}

TEST_F(CompletionQueueTest, WhatIsTheRuntimesOwnIsLeftOut) {
  int left_out = 0;
  std::deque<Operation> own;
  Operation users;
  for (int i = 0; i < 3; ++i) {
    own.emplace_back([&](void**, bool*) {
      ++left_out;
      return false;
    });
    BeginAndPush(own.back());
  }
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::TIMEOUT);
  EXPECT_EQ(left_out, 3);
  for (Operation& operation : own) BeginAndPush(operation);
  BeginAndPush(users);
  EXPECT_TRUE(Gives(Poll(queue_), users));
}

// As a request does whose call turns out to be unusable.
TEST_F(CompletionQueueTest, WhatBeginsAgainUnseenKeepsTheQueueOpen) {
  bool again = true;
  Operation second;
  Operation first([&](void**, bool*) {
    again = queue_.Begin();
    return false;
  });
  BeginAndPush(first);
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::TIMEOUT);
  ASSERT_TRUE(again);
  queue_.Shutdown();
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::TIMEOUT);
  queue_.Push(&second, true);
  EXPECT_TRUE(Gives(Poll(queue_), second));
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::SHUTDOWN);
}

// ---- Deadlines.

TEST_F(CompletionQueueTest, ADeadlineInThePastTakesWhatIsThere) {
  const auto expect = [&](const auto& deadline) {
    EXPECT_EQ(AsyncNext(queue_, deadline).status, CompletionQueue::TIMEOUT);
    Operation operation;
    BeginAndPush(operation);
    EXPECT_TRUE(Gives(AsyncNext(queue_, deadline), operation));
    EXPECT_EQ(AsyncNext(queue_, deadline).status, CompletionQueue::TIMEOUT);
  };
  expect(absl::InfinitePast());
  expect(absl::Now());
  expect(std::chrono::system_clock::now());
  expect(std::chrono::system_clock::time_point::min());
  expect(std::chrono::steady_clock::now() - std::chrono::hours(1));
  queue_.Shutdown();
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::SHUTDOWN);
}

TEST_F(CompletionQueueTest, ADeadlineIsWaitedForAndNotLonger) {
  for (int i = 0; i < 3; ++i) {
    const absl::Time deadline = absl::Now() + absl::Milliseconds(5);
    EXPECT_EQ(AsyncNext(queue_, deadline).status, CompletionQueue::TIMEOUT);
    EXPECT_GE(absl::Now(), deadline);
    const auto steady =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    EXPECT_EQ(AsyncNext(queue_, steady).status, CompletionQueue::TIMEOUT);
    EXPECT_GE(std::chrono::steady_clock::now(), steady);
  }
}

TEST_F(CompletionQueueTest, AnEventEndsTheWaitForADeadline) {
  Operation operation;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(queue_.Begin());
    std::thread pushing([&] { queue_.Push(&operation, true); });
    EXPECT_TRUE(
        Gives(AsyncNext(queue_, absl::Now() + absl::Hours(1)), operation));
    pushing.join();
  }
}

TEST_F(CompletionQueueTest, WhatIsBegunFirstCanBeWhatComes) {
  Operation operation;
  Taken taken = {};
  bool called = false;
  const auto next = [&](const auto& f) {
    taken.status =
        queue_.DoThenAsyncNext(f, &taken.tag, &taken.ok, absl::InfinitePast());
  };
  next([&] { called = true; });
  EXPECT_TRUE(called);
  EXPECT_EQ(taken.status, CompletionQueue::TIMEOUT);
  next([&] { BeginAndPush(operation); });
  EXPECT_TRUE(Gives(taken, operation));
  next([&] { queue_.Shutdown(); });
  EXPECT_EQ(taken.status, CompletionQueue::SHUTDOWN);
}

// ---- The end.

TEST_F(CompletionQueueTest, AnEmptyQueueIsOverAtOnce) {
  queue_.Shutdown();
  void* tag;
  bool ok;
  EXPECT_FALSE(queue_.Next(&tag, &ok));
  queue_.Shutdown();
  EXPECT_FALSE(queue_.Next(&tag, &ok));
  EXPECT_EQ(AsyncNext(queue_, absl::InfiniteFuture()).status,
            CompletionQueue::SHUTDOWN);
}

TEST_F(CompletionQueueTest, NothingBeginsAfterShutdown) {
  Operation operation;
  ASSERT_TRUE(queue_.Begin());
  queue_.Shutdown();
  EXPECT_FALSE(queue_.Begin());
  queue_.Push(&operation, true);
  EXPECT_FALSE(queue_.Begin());
  EXPECT_TRUE(Gives(Poll(queue_), operation));
  EXPECT_FALSE(queue_.Begin());
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::SHUTDOWN);
}

TEST_F(CompletionQueueTest, WhatIsUnderWayStillComes) {
  std::deque<Operation> operations(3);
  BeginAndPush(operations[0]);
  ASSERT_TRUE(queue_.Begin());
  ASSERT_TRUE(queue_.Begin());
  queue_.Shutdown();
  EXPECT_TRUE(Gives(Poll(queue_), operations[0]));
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::TIMEOUT);
  queue_.Push(&operations[1], false);
  EXPECT_TRUE(Gives(Poll(queue_), operations[1], /*ok=*/false));
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::TIMEOUT);
  queue_.Push(&operations[2], true);
  EXPECT_TRUE(Gives(Poll(queue_), operations[2]));
  EXPECT_EQ(Poll(queue_).status, CompletionQueue::SHUTDOWN);
}

TEST_F(CompletionQueueTest, DestroyedTooEarlyItSaysWhatToDo) {
  std::vector<std::string> lines;
  SetLogSink(
      [&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  {
    CompletionQueue queue;
    ASSERT_TRUE(queue.Begin());
    ASSERT_TRUE(queue.Begin());
  }
  { CompletionQueue unused; }
  SetLogSink(nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(absl::StrContains(lines[0], "2 operations")) << lines[0];
  EXPECT_TRUE(absl::StrContains(lines[0], "Shutdown")) << lines[0];
}

TEST(ServerCompletionQueueTest, IsAQueue) {
  EXPECT_TRUE(ServerCompletionQueue(true).IsFrequentlyPolled());
  ServerCompletionQueue queue(false);
  EXPECT_FALSE(queue.IsFrequentlyPolled());
  Operation operation;
  ASSERT_TRUE(queue.Begin());
  queue.Push(&operation, true);
  EXPECT_TRUE(Gives(Poll(queue), operation));
}

// ---- Several threads.

// Threads that take events until there are no more.
class Takers {
 public:
  // `wait`: takes one event, or not.
  Takers(int count, std::function<Taken()> wait) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, wait] { Take(wait); });
    }
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
  }

  int events() const { return events_; }
  int not_ok() const { return not_ok_; }
  int ends() const { return ends_; }

 private:
  void Take(const std::function<Taken()>& wait) {
    for (;;) {
      const Taken taken = wait();
      if (taken.status == CompletionQueue::SHUTDOWN) {
        ++ends_;
        return;
      }
      if (taken.status == CompletionQueue::TIMEOUT) continue;
      ++events_;
      if (!taken.ok) ++not_ok_;
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<int> events_{0};
  std::atomic<int> not_ok_{0};
  std::atomic<int> ends_{0};
};

TEST_F(CompletionQueueTest, TheLastEventEndsItForAllThatWait) {
  constexpr int kThreads = 5;
  for (int round = 0; round < 50; ++round) {
    CompletionQueue queue;
    Operation operation;
    ASSERT_TRUE(queue.Begin());
    Takers takers(kThreads,
                  [&] { return AsyncNext(queue, absl::InfiniteFuture()); });
    const bool push_first = round % 2 == 0;
    if (push_first) queue.Push(&operation, true);
    queue.Shutdown();
    if (!push_first) queue.Push(&operation, true);
    takers.Join();
    EXPECT_EQ(takers.events(), 1);
    EXPECT_EQ(takers.ends(), kThreads);
  }
}

TEST_F(CompletionQueueTest, ShutdownAloneEndsItForAllThatWait) {
  for (int round = 0; round < 50; ++round) {
    CompletionQueue queue;
    Takers takers(3, [&] { return AsyncNext(queue, absl::InfiniteFuture()); });
    queue.Shutdown();
    takers.Join();
    EXPECT_EQ(takers.events(), 0);
    EXPECT_EQ(takers.ends(), 3);
  }
}

// Whoever hears that it is over may destroy it.
TEST_F(CompletionQueueTest, ItMayGoAsSoonAsItIsOver) {
  for (int round = 0; round < 300; ++round) {
    auto queue = std::make_unique<CompletionQueue>();
    CompletionQueue* const borrowed = queue.get();
    Operation operation;
    ASSERT_TRUE(queue->Begin());
    std::thread taking([queue = std::move(queue)]() mutable {
      void* tag;
      bool ok;
      while (queue->Next(&tag, &ok)) {
      }
      queue.reset();
    });
    if (round % 2 == 0) {
      borrowed->Shutdown();
      borrowed->Push(&operation, true);
    } else {
      borrowed->Push(&operation, true);
      borrowed->Shutdown();
    }
    taking.join();
  }
}

// What comes twice, or not at all, shows in the counts.
void ExpectEachEventOnce(CompletionQueue& queue, std::function<Taken()> wait) {
  constexpr int kProducers = 2;
  constexpr int kEach = 5'000;
  std::atomic<int> finalized{0};
  std::vector<std::deque<Operation>> operations(kProducers);
  for (auto& each : operations) {
    for (int i = 0; i < kEach; ++i) {
      each.emplace_back([&](void**, bool*) {
        ++finalized;
        return true;
      });
    }
  }
  constexpr int kTakers = 4;
  Takers takers(kTakers, std::move(wait));
  std::vector<std::thread> producers;
  for (auto& each : operations) {
    producers.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        ASSERT_TRUE(queue.Begin());
        queue.Push(&each[static_cast<size_t>(i)], i % 5 != 0);
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  queue.Shutdown();
  takers.Join();
  EXPECT_EQ(finalized, kProducers * kEach);
  EXPECT_EQ(takers.events(), kProducers * kEach);
  EXPECT_EQ(takers.not_ok(), kProducers * kEach / 5);
  EXPECT_EQ(takers.ends(), kTakers);
}

TEST_F(CompletionQueueTest, EachEventGoesToOneThread) {
  ExpectEachEventOnce(
      queue_, [&] { return AsyncNext(queue_, absl::InfiniteFuture()); });
}

// A thread whose time is over leaves the others where they are, and takes no
// event with it.
TEST_F(CompletionQueueTest, EachEventGoesToOneThreadOfThoseWhoseTimeEnds) {
  std::atomic<int> turn{0};
  ExpectEachEventOnce(queue_, [&] {
    return AsyncNext(queue_, absl::Now() + absl::Microseconds(turn++ % 40));
  });
}

}  // namespace
}  // namespace rpc
