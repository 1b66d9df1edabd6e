// The moment at which a coroutine is suspended, and the moment at which it may
// go on: whichever comes second has it go on.
//
//   bool await_suspend(std::coroutine_handle<> awaiter) {
//     awaiter_ = awaiter;
//     Begin();  // ends in Completed, here or on any thread
//     return !suspension_.Meet();
//   }
//   void Completed() {
//     if (suspension_.Meet()) awaiter_.resume();
//   }
//
// What is complete before await_suspend returns does not suspend the coroutine
// at all: a loop over such things stays at one depth of the stack, without
// relying on tail calls, which g++ does not make where it does not optimize or
// where it instruments.
//
// Thread rule: Meet is called twice, by any threads. What was written before
// the first call is visible after the second.
#ifndef VERBENA_RPC_INTERNAL_SUSPENSION_H_
#define VERBENA_RPC_INTERNAL_SUSPENSION_H_

#include <atomic>

namespace rpc::internal {

class Suspension {
 public:
  // True for the second of the two. After a first one of await_suspend's the
  // coroutine, and this with it, may be gone.
  bool Meet() noexcept {
    return met_.exchange(true, std::memory_order_acq_rel);
  }

 private:
  std::atomic<bool> met_{false};
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SUSPENSION_H_
