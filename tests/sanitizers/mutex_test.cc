// Goal: ThreadSanitizer understands absl::Mutex and what is built upon it,
// although the distribution's Abseil is not built for it
// (third_party/absl/absl/tsan): what is protected is no race, in each way of
// locking and waiting, and what is not protected still is one. Method: threads
// that would race but for the mutex; the sanitizer is the judge, so that the
// same tests say nothing more than "it works" elsewhere.
#include "absl/synchronization/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 500;

// Runs `body` in several threads at once and waits for all.
template <typename Body>
void InThreads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

TEST(MutexUnderSanitizerTest, WritersExcludeEachOther) {
  absl::Mutex mutex;
  int value = 0;
  InThreads([&] {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutex);
      ++value;
    }
  });
  EXPECT_EQ(value, kThreads * kRounds);
}

TEST(MutexUnderSanitizerTest, ReadersSeeWhatWritersWrote) {
  absl::Mutex mutex;
  int value = 0;
  InThreads([&] {
    int last = 0;
    for (int i = 0; i < kRounds; ++i) {
      {
        absl::WriterMutexLock lock(&mutex);
        ++value;
      }
      absl::ReaderMutexLock lock(&mutex);
      EXPECT_GT(value, last);
      last = value;
    }
  });
}

TEST(MutexUnderSanitizerTest, TryingLocksToo) {
  absl::Mutex mutex;
  int value = 0;
  InThreads([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (mutex.TryLock()) {
        ++value;
        mutex.Unlock();
      }
      if (mutex.ReaderTryLock()) {
        EXPECT_GE(value, 0);
        mutex.ReaderUnlock();
      }
    }
  });
}

// Two threads that take turns: each waits for its own value of `turn`.
TEST(MutexUnderSanitizerTest, ConditionsOrderWhatTheyWaitFor) {
  absl::Mutex mutex;
  int turn = 0;
  int unprotected_but_ordered = 0;
  auto take_turns = [&](int mine) {
    auto is_mine = [&turn, mine] { return turn % 2 == mine; };
    for (int i = 0; i < kRounds; ++i) {
      if (i % 3 == 0) {
        mutex.Lock();
        mutex.Await(absl::Condition(&is_mine));
      } else if (i % 3 == 1) {
        mutex.LockWhen(absl::Condition(&is_mine));
      } else {
        while (!mutex.LockWhenWithTimeout(absl::Condition(&is_mine),
                                          absl::Milliseconds(1))) {
          mutex.Unlock();
        }
      }
      ++unprotected_but_ordered;
      ++turn;
      mutex.Unlock();
    }
  };
  std::thread other([&] { take_turns(1); });
  take_turns(0);
  other.join();
  EXPECT_EQ(unprotected_but_ordered, 2 * kRounds);
}

TEST(MutexUnderSanitizerTest, ConditionVariablesReleaseAndTakeTheMutex) {
  absl::Mutex mutex;
  absl::CondVar changed;
  int turn = 0;
  auto take_turns = [&](int mine) {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutex);
      while (turn % 2 != mine) {
        if (i % 2 == 0) {
          changed.Wait(&mutex);
        } else {
          changed.WaitWithTimeout(&mutex, absl::Milliseconds(1));
        }
      }
      ++turn;
      changed.SignalAll();
    }
  };
  std::thread other([&] { take_turns(1); });
  take_turns(0);
  other.join();
  EXPECT_EQ(turn, 2 * kRounds);
}

TEST(MutexUnderSanitizerTest, ReadersMayWaitForConditions) {
  absl::Mutex mutex;
  int value = 0;
  auto is_set = [&value] { return value != 0; };
  std::thread writer([&] {
    absl::MutexLock lock(&mutex);
    value = 1;
  });
  mutex.ReaderLock();
  mutex.Await(absl::Condition(&is_set));
  EXPECT_EQ(value, 1);
  mutex.ReaderUnlock();
  writer.join();
}

// Built upon the mutex inside the library.
TEST(MutexUnderSanitizerTest, NotificationsAndCountersOrderToo) {
  for (int i = 0; i < kRounds / 10; ++i) {
    int value = 0;
    absl::Notification notification;
    absl::BlockingCounter counter(1);
    std::thread thread([&] {
      value = 1;
      notification.Notify();
      counter.Wait();
      EXPECT_EQ(value, 2);
    });
    notification.WaitForNotification();
    EXPECT_EQ(value, 1);
    value = 2;
    counter.DecrementCount();
    thread.join();
  }
}

TEST(MutexUnderSanitizerTest, EveryPartOfACountIsSeen) {
  int values[kThreads] = {};
  absl::BlockingCounter counter(kThreads);
  std::vector<std::thread> threads;
  for (int& value : values) {
    threads.emplace_back([&] {
      value = 1;
      counter.DecrementCount();
    });
  }
  counter.Wait();
  for (const int value : values) EXPECT_EQ(value, 1);
  for (std::thread& thread : threads) thread.join();
}

// Copies share memory, which the last one frees.
TEST(MutexUnderSanitizerTest, StatusesAreCopiedAcrossThreads) {
  for (int i = 0; i < kRounds; ++i) {
    absl::Status status = absl::UnavailableError("the text that is shared");
    std::thread thread([copy = status] {
      EXPECT_EQ(copy.message(), "the text that is shared");
    });
    EXPECT_EQ(status.message(), "the text that is shared");
    status = absl::OkStatus();
    thread.join();
  }
}

#ifdef ABSL_HAVE_THREAD_SANITIZER
void Race() {
  absl::Mutex mine, yours;
  int value = 0;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&yours);
      ++value;
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    absl::MutexLock lock(&mine);
    ++value;
  }
  other.join();
}

TEST(MutexUnderSanitizerDeathTest, TwoMutexesProtectNothing) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(Race(), "data race");
}
#endif

}  // namespace
