// Threads that run what may block: handlers that were seen to take long, and
// callbacks that must not run on the stack of the thread that caused them.
//
// A task that finds no idle thread gets a new one, up to a limit; beyond it
// tasks wait in a queue, first come, first served. A thread that was idle for
// kIdleTimeout ends, so a process that stopped needing them has none.
//
//   class Job final : public Executor::Task { void RunTask() override { ... }
//   }; Executor executor({.max_threads = 8}); if (!executor.Post(job)) { ...
//   the queue is full ... }
//
// Thread rule: Post from any thread. A task that was accepted runs exactly
// once.
#ifndef VERBENA_RPC_INTERNAL_EXECUTOR_H_
#define VERBENA_RPC_INTERNAL_EXECUTOR_H_

#include <pthread.h>

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace rpc::internal {

class Executor {
 public:
  static constexpr size_t kDefaultMaxThreads = 256;
  static constexpr size_t kDefaultMaxQueued = 65536;
  static constexpr absl::Duration kIdleTimeout = absl::Seconds(10);

  struct Options {
    size_t max_threads = kDefaultMaxThreads;  // at least 1
    size_t max_queued = kDefaultMaxQueued;    // tasks no thread has begun
    absl::Duration idle_timeout = kIdleTimeout;
    // It lives as long as the process: nobody waits for its threads' end.
    bool detached = false;
  };

  // Intrusive, so that posting allocates nothing. One that is posted must live
  // until RunTask, which may delete it.
  class Task {
   public:
    virtual void RunTask() = 0;

   protected:
    ~Task() = default;

   private:
    friend class Executor;
    Task* next_task_ = nullptr;
  };

  explicit Executor(const Options& options);
  // Runs what was posted, then ends the threads. REQUIRES: not from a task.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // False, with no effect, where max_queued tasks wait, or no thread could be
  // made and none exists.
  bool Post(Task* task);

  // One for the process, of callbacks that clients' calls hand over. Never
  // destroyed.
  static Executor& ForCallbacks();

 private:
  static void* ThreadMain(void* executor);
  void RunTasks();
  // Waits for a task. Null: the thread is to end.
  Task* NextTask() ABSL_LOCKS_EXCLUDED(mutex_);
  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Join(std::vector<pthread_t> threads);

  const Options options_;
  absl::Mutex mutex_;
  absl::CondVar task_or_end_;
  absl::CondVar thread_ended_;
  Task* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Task* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t threads_ ABSL_GUARDED_BY(mutex_) = 0;  // running
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;     // of these, waiting for a task
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<pthread_t> ended_ ABSL_GUARDED_BY(mutex_);  // to be joined
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_EXECUTOR_H_
