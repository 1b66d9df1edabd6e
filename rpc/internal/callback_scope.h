// Marks that the calling thread runs inside a callback of a transport.
//
// There a transport must not be destroyed, for its own frames are on the stack
// below. A user's callback may well drop the last reference to a channel: the
// channel's end then goes to another thread (see channel.cc).
#ifndef VERBENA_RPC_INTERNAL_CALLBACK_SCOPE_H_
#define VERBENA_RPC_INTERNAL_CALLBACK_SCOPE_H_

namespace rpc::internal {

// For the stack of a sink's callback. `call` names what runs there: the state
// of the call, so that it can tell its own thread from others.
class CallbackScope {
 public:
  explicit CallbackScope(const void* call) : call_(call), outer_(innermost_) {
    innermost_ = this;
  }
  ~CallbackScope() { innermost_ = outer_; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  // What runs on this thread; null outside of callbacks.
  static const void* current() {
    return innermost_ == nullptr ? nullptr : innermost_->call_;
  }
  // In which callback: calls' state is used again, also while a callback that
  // it was the state of still runs below. Null outside.
  static const CallbackScope* innermost() { return innermost_; }
  // Tells the calling thread from all others that there are at the time.
  static const void* ThisThread() { return &innermost_; }

 private:
  static constinit thread_local const CallbackScope* innermost_;

  const void* const call_;
  // Callbacks nest: a handler that makes a blocking call drives a transport.
  const CallbackScope* const outer_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CALLBACK_SCOPE_H_
