// The operations of streams (stream_operation.h) for coroutines that await
// them. Used by client_coroutine.h and server_coroutine.h.
//
// An awaiter is in the frame of the coroutine, and is the operation itself:
// nothing is allocated. One that is completed at once does not suspend the
// coroutine. Else the coroutine goes on where the operation is completed.
//
// Thread rule: that of the stream. A stream must not go while one of its
// operations is awaited.
#ifndef VERBENA_RPC_INTERNAL_STREAM_AWAITERS_H_
#define VERBENA_RPC_INTERNAL_STREAM_AWAITERS_H_

#include <coroutine>
#include <utility>

#include "rpc/buffer.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/internal/suspension.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class OperationAwaiter : protected StreamOperation {
 public:
  OperationAwaiter(const OperationAwaiter&) = delete;
  OperationAwaiter& operator=(const OperationAwaiter&) = delete;

  bool await_ready() const noexcept { return false; }

 protected:
  OperationAwaiter() = default;
  ~OperationAwaiter() = default;

  // For await_suspend: begins an operation of this.
  template <class Begin>
  bool Suspend(std::coroutine_handle<> awaiter, Begin& begin) {
    awaiter_ = awaiter;
    begin(static_cast<StreamOperation*>(this));
    return !suspension_.Meet();
  }
  bool ok() const { return ok_; }

 private:
  void Complete(bool ok) final {
    ok_ = ok;
    if (!suspension_.Meet()) return;
    CallbackScope scope(this);
    awaiter_.resume();
  }

  std::coroutine_handle<> awaiter_;
  Suspension suspension_;
  bool ok_ = false;
};

// One that says whether it went well. `begin` gets the operation.
template <class Begin>
class [[nodiscard]] OkAwaiter final : public OperationAwaiter {
 public:
  explicit OkAwaiter(Begin begin) : begin_(std::move(begin)) {}

  bool await_suspend(std::coroutine_handle<> awaiter) {
    return Suspend(awaiter, begin_);
  }
  bool await_resume() const { return ok(); }

 private:
  Begin begin_;
};

// A write to a stream of either side.
template <class Stream>
auto WriteTo(Stream& stream, ConstMessageRef message, WriteOptions options) {
  return OkAwaiter([stream = &stream, message, options = std::move(options)](
                       StreamOperation* operation) mutable {
    stream->Write(message, std::move(options), operation);
  });
}

// A read; of a stream of either side.
template <class Stream>
class [[nodiscard]] ReadAwaiter final : public OperationAwaiter {
 public:
  ReadAwaiter(Stream& stream, MessageRef message, BufferChain* attachment)
      : stream_(stream), message_(message), attachment_(attachment) {}

  bool await_suspend(std::coroutine_handle<> awaiter) {
    auto begin = [this](StreamOperation* operation) {
      stream_.Read(&received_, message_, attachment_, operation);
    };
    return Suspend(awaiter, begin);
  }
  // Parsed where the coroutine goes on.
  bool await_resume() {
    return ok() && stream_.Decode(received_, message_, attachment_);
  }

 private:
  Stream& stream_;
  const MessageRef message_;
  BufferChain* const attachment_;
  StreamMessage received_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_STREAM_AWAITERS_H_
