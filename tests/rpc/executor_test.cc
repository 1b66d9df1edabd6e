#include "rpc/internal/executor.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace rpc::internal {
namespace {

class FunctionTask final : public Executor::Task {
 public:
  explicit FunctionTask(std::function<void()> function)
      : function_(std::move(function)) {}
  void RunTask() override {
    function_();
    delete this;
  }

 private:
  const std::function<void()> function_;
};

bool Post(Executor& executor, std::function<void()> function) {
  auto task = std::make_unique<FunctionTask>(std::move(function));
  if (!executor.Post(task.get())) return false;
  task.release();
  return true;
}

TEST(ExecutorTest, RunsEverythingBeforeItEnds) {
  std::atomic<int> runs{0};
  {
    Executor executor({.max_threads = 3});
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(Post(executor, [&] { runs.fetch_add(1); }));
    }
  }
  EXPECT_EQ(runs.load(), 1000);
}

TEST(ExecutorTest, ThreadsGrowWithBlockedTasks) {
  constexpr int kTasks = 50;
  Executor executor({.max_threads = kTasks});
  auto* const barrier = new absl::Barrier(kTasks);
  for (int i = 0; i < kTasks; ++i) {
    ASSERT_TRUE(Post(executor, [=] {
      if (barrier->Block()) delete barrier;
    }));
  }
}

TEST(ExecutorTest, OrderOfOneThread) {
  std::vector<int> order;
  {
    Executor executor({.max_threads = 1});
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(Post(executor, [&, i] { order.push_back(i); }));
    }
  }
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(ExecutorTest, FullQueueRefuses) {
  absl::Notification begun;
  absl::Notification release;
  Executor executor({.max_threads = 1, .max_queued = 2});
  ASSERT_TRUE(Post(executor, [&] {
    begun.Notify();
    release.WaitForNotification();
  }));
  begun.WaitForNotification();
  EXPECT_TRUE(Post(executor, [] {}));
  EXPECT_TRUE(Post(executor, [] {}));
  EXPECT_FALSE(Post(executor, [] {}));
  release.Notify();
}

TEST(ExecutorTest, IdleThreadsEndAndNewOnesCome) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  Executor executor({.max_threads = 4, .idle_timeout = absl::Milliseconds(1)});
  for (int i = 0; i < 50; ++i) {
    absl::Notification done;
    ASSERT_TRUE(Post(executor, [&] {
      std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      done.Notify();
    }));
    done.WaitForNotification();
    absl::SleepFor(absl::Milliseconds(i % 4));
  }
}

// What the thread sanitizer calls a leak at exit, too.
TEST(ExecutorTest, ADetachedOneLeavesNoThreadToBeJoined) {
  static auto* const executor =
      new Executor({.idle_timeout = absl::Milliseconds(1), .detached = true});
  std::string thread;  // its directory
  absl::Notification ran;
  ASSERT_TRUE(Post(*executor, [&] {
    thread = "/proc/self/task/" + std::to_string(gettid());
    ran.Notify();
  }));
  ran.WaitForNotification();
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  const auto is_there = [&] { return access(thread.c_str(), F_OK) == 0; };
  while (is_there() && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_FALSE(is_there()) << thread;
}

TEST(ExecutorTest, TasksPostTasks) {
  std::atomic<int> runs{0};
  absl::Notification done;
  std::function<void()> next;
  Executor executor({.max_threads = 2});
  next = [&] {
    if (runs.fetch_add(1) + 1 == 1000) return done.Notify();
    ASSERT_TRUE(Post(executor, next));
  };
  ASSERT_TRUE(Post(executor, next));
  done.WaitForNotification();
}

TEST(ExecutorTest, ManyThreadsPost) {
  std::atomic<int> runs{0};
  {
    Executor executor(
        {.max_threads = 8, .idle_timeout = absl::Microseconds(100)});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 2000; ++j) {
          ASSERT_TRUE(Post(executor, [&] { runs.fetch_add(1); }));
          if (j % 100 == 0) absl::SleepFor(absl::Microseconds(200));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(runs.load(), 8000);
}

}  // namespace
}  // namespace rpc::internal
