// Coroutines for calls: Task, the type that they return, and the two ways in
// which something that is no coroutine begins one.
//
//   rpc::Task<int64_t> Count(Store::Stub* stub, std::string key) {
//     rpc::ClientContext context;
//     GetRequest request;
//     request.set_key(std::move(key));
//     GetResponse response;
//     rpc::Status status =
//         co_await stub->coro()->Get(&context, request, &response);
//     co_return status.ok() ? response.count() : 0;
//   }
//
//   int64_t count = rpc::SyncWait(Count(stub.get(), "a"));
//
// The calls themselves: client_coroutine.h, and server_coroutine.h for
// handlers.
//
// Thread rule: a coroutine begins on the thread that awaits or starts it, and
// goes on where what it awaited is completed: on whichever thread drives the
// transport. There it must not block for long, nor hold a mutex across a
// co_await, as it may come back on another thread. It runs on one thread at a
// time, so its own variables need no lock.
//
// Arguments of a coroutine: those that are references or pointers, `this` and
// the captures of a lambda included, must outlive it; values are kept.
#ifndef VERBENA_RPC_COROUTINE_H_
#define VERBENA_RPC_COROUTINE_H_

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "absl/time/time.h"
#include "rpc/internal/task_promise.h"
#include "rpc/transport.h"

namespace rpc {

namespace internal {
struct TaskAccess;
}  // namespace internal

// A coroutine that has not begun yet, and its result once it has ended. It
// begins when it is awaited, which may happen once:
//
//   int64_t count = co_await Count(stub, "a");
//   Task<int64_t> task = Count(stub, "b");
//   count += co_await std::move(task);
//
// What it throws, the co_await throws. A task that was never awaited never
// runs; one that has begun must end before it is destroyed.
template <class T = void>
class [[nodiscard]] Task final {
  static_assert(!std::is_reference_v<T>, "return a pointer instead");

 public:
  using promise_type = internal::TaskPromise<T>;

  // None: of a handler, that the method is not implemented.
  Task() = default;
  Task(Task&& other) noexcept
      : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    // What this was goes now, not with `other`.
    Task(std::move(other)).Swap(*this);
    return *this;
  }
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  explicit operator bool() const { return static_cast<bool>(coroutine_); }

  // REQUIRES: not none.
  auto operator co_await() && noexcept { return Awaiter(coroutine_); }

 private:
  friend promise_type;
  friend struct internal::TaskAccess;

  using Coroutine = std::coroutine_handle<promise_type>;

  class [[nodiscard]] Awaiter {
   public:
    explicit Awaiter(Coroutine coroutine) : coroutine_(coroutine) {}
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> awaiter) {
      return coroutine_.promise().StartFor(coroutine_, awaiter);
    }
    T await_resume() { return coroutine_.promise().TakeResult(); }

   private:
    const Coroutine coroutine_;
  };

  explicit Task(Coroutine coroutine) : coroutine_(coroutine) {}
  void Swap(Task& other) noexcept { std::swap(coroutine_, other.coroutine_); }

  Coroutine coroutine_ = nullptr;
};

namespace internal {

template <class T>
Task<T> TaskPromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

inline Task<void> TaskPromise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

// For those who begin a task without being a coroutine.
struct TaskAccess {
  // `task` may be gone when this returns. REQUIRES: not none.
  template <class T>
  static void Start(Task<T>& task, TaskWatcher* watcher) {
    const auto coroutine = task.coroutine_;
    coroutine.promise().StartFor(coroutine, watcher);
  }
  // Once it has ended.
  template <class T>
  static T TakeResult(Task<T>& task) {
    return task.coroutine_.promise().TakeResult();
  }
  template <class T>
  static std::exception_ptr Error(const Task<T>& task) {
    return task.coroutine_.promise().error();
  }
};

// Owns itself.
template <class Done>
class DetachedTask final : private TaskWatcher {
 public:
  static void Run(Task<void> task, Done done) {
    auto* const self = new DetachedTask(std::move(task), std::move(done));
    TaskAccess::Start(self->task_, self);
  }

 private:
  DetachedTask(Task<void> task, Done done)
      : task_(std::move(task)), done_(std::move(done)) {}

  void OnTaskDone() override {
    std::exception_ptr error = TaskAccess::Error(task_);
    Done done = std::move(done_);
    delete this;
    done(std::move(error));
  }

  Task<void> task_;
  Done done_;
};

class BlockedTask final : public TaskWatcher {
 public:
  void OnTaskDone() override { done_.Set(); }
  void Wait() { done_.WaitUntil(absl::InfiniteFuture()); }

 private:
  Event done_;
};

}  // namespace internal

// Begins `task`, and leaves it to itself. When it has ended and is gone, with
// all of its variables, `done` gets what it threw, or null; on this thread
// before Detach returns, or on another one. REQUIRES: `task` is not none;
// `done` does not throw.
template <class Done>
void Detach(Task<void> task, Done done) {
  internal::DetachedTask<Done>::Run(std::move(task), std::move(done));
}

// What it throws ends the process, as with a thread.
inline void Detach(Task<void> task) {
  Detach(std::move(task), [](const std::exception_ptr& error) noexcept {
    if (error != nullptr) std::rethrow_exception(error);
  });
}

// Begins `task`, and blocks until it has ended: for main and for tests. Throws
// what it throws. REQUIRES: not none; not within a coroutine or a callback.
template <class T>
T SyncWait(Task<T> task) {
  internal::BlockedTask blocked;
  internal::TaskAccess::Start(task, &blocked);
  blocked.Wait();
  return internal::TaskAccess::TakeResult(task);
}

}  // namespace rpc

#endif  // VERBENA_RPC_COROUTINE_H_
