#include "rpc/internal/executor.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rpc::internal {

Executor::Executor(const Options& options) : options_(options) {}

Executor::~Executor() {
  std::vector<pthread_t> ended;
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    task_or_end_.SignalAll();
    while (threads_ > 0) thread_ended_.Wait(&mutex_);
    ended.swap(ended_);
  }
  Join(std::move(ended));
}

bool Executor::Post(Task* task) {
  std::vector<pthread_t> ended;
  {
    absl::MutexLock lock(&mutex_);
    // Idle threads that were woken but did not yet run count as idle still;
    // queued_ tells how many of them are spoken for.
    if (queued_ >= idle_) {
      if (threads_ < options_.max_threads) StartThread();
      if (threads_ == 0 || queued_ >= options_.max_queued + idle_) return false;
    }
    task->next_task_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_task_) = task;
    last_ = task;
    ++queued_;
    task_or_end_.Signal();
    ended.swap(ended_);
  }
  Join(std::move(ended));
  return true;
}

Executor& Executor::ForCallbacks() {
  static auto* const executor = new Executor({.detached = true});
  return *executor;
}

void* Executor::ThreadMain(void* executor) {
  static_cast<Executor*>(executor)->RunTasks();
  return nullptr;
}

void Executor::RunTasks() {
  while (Task* const task = NextTask()) task->RunTask();
}

Executor::Task* Executor::NextTask() {
  absl::MutexLock lock(&mutex_);
  ++idle_;
  bool timed_out = false;
  while (first_ == nullptr && !ending_ && !timed_out) {
    timed_out = task_or_end_.WaitWithTimeout(&mutex_, options_.idle_timeout);
  }
  --idle_;
  if (first_ == nullptr) {
    --threads_;
    if (options_.detached) {
      pthread_detach(pthread_self());
    } else {
      ended_.push_back(pthread_self());
    }
    thread_ended_.Signal();
    return nullptr;
  }
  Task* const task = first_;
  first_ = task->next_task_;
  --queued_;
  return task;
}

bool Executor::StartThread() {
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, &ThreadMain, this);
  if (error != 0) {
    static LogLimiter limiter(absl::Seconds(10));
    if (limiter.Allow()) {
      Log(LogLevel::kWarning,
          absl::StrCat("pthread_create: ", std::strerror(error), ", with ",
                       threads_,
                       " threads for handlers: calls wait for one "
                       "(ulimit -u, or fewer handler threads)"));
    }
    return false;
  }
  ++threads_;
  return true;
}

void Executor::Join(std::vector<pthread_t> threads) {
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

}  // namespace rpc::internal
