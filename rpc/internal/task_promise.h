// What the coroutine of a rpc::Task keeps besides the user's variables: who
// waits for its end, and its result.
//
// It ends once, and then tells one: the coroutine that awaits it, or a watcher,
// where something other than a coroutine began it.
//
// Thread rule: a coroutine runs on one thread at a time.
#ifndef VERBENA_RPC_INTERNAL_TASK_PROMISE_H_
#define VERBENA_RPC_INTERNAL_TASK_PROMISE_H_

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "rpc/internal/suspension.h"

namespace rpc {

template <class T>
class Task;

namespace internal {

class TaskWatcher {
 public:
  // The task has ended, and is suspended for good: its result may be taken and
  // the task be destroyed, here or by another thread. Comes on the stack of
  // whatever had the coroutine go on, of its start, too.
  virtual void OnTaskDone() = 0;

 protected:
  ~TaskWatcher() = default;
};

class TaskPromiseBase {
 public:
  TaskPromiseBase(const TaskPromiseBase&) = delete;
  TaskPromiseBase& operator=(const TaskPromiseBase&) = delete;

  // The coroutine itself is `self`. Begins it for a coroutine that awaits it;
  // false: it has ended already, and the other one goes on.
  bool StartFor(std::coroutine_handle<> self, std::coroutine_handle<> awaiter) {
    awaiter_ = awaiter;
    self.resume();
    return !suspension_.Meet();
  }
  // The same for a watcher. The coroutine may be gone afterwards.
  void StartFor(std::coroutine_handle<> self, TaskWatcher* watcher) {
    watcher_ = watcher;
    self.resume();
  }

  // How it ended, once it has; null: with a result.
  const std::exception_ptr& error() const { return error_; }

  // For the compiler.
  std::suspend_always initial_suspend() const noexcept { return {}; }
  auto final_suspend() const noexcept { return End(); }
  void unhandled_exception() noexcept { error_ = std::current_exception(); }

 protected:
  TaskPromiseBase() = default;
  ~TaskPromiseBase() = default;

  void RethrowError() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  // From Ended on the coroutine may be gone.
  struct End {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(
        std::coroutine_handle<Promise> self) const noexcept {
      return self.promise().Ended();
    }
    void await_resume() const noexcept {}
  };

  // Returns who goes on.
  std::coroutine_handle<> Ended() noexcept {
    if (watcher_ != nullptr) {
      watcher_->OnTaskDone();
      return std::noop_coroutine();
    }
    const std::coroutine_handle<> awaiter = awaiter_;
    if (suspension_.Meet()) return awaiter;
    return std::noop_coroutine();
  }

  TaskWatcher* watcher_ = nullptr;
  std::coroutine_handle<> awaiter_;
  Suspension suspension_;  // of the awaiter
  std::exception_ptr error_;
};

template <class T>
class TaskPromise final : public TaskPromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <std::convertible_to<T> Value = T>
  void return_value(Value&& value) {
    value_.emplace(std::forward<Value>(value));
  }
  // Once it has ended; throws what it threw.
  T TakeResult() {
    RethrowError();
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void TakeResult() const { RethrowError(); }
};

}  // namespace internal
}  // namespace rpc

#endif  // VERBENA_RPC_INTERNAL_TASK_PROMISE_H_
