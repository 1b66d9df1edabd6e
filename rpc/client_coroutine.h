// Calls that coroutines await: what the functions of a stub's coro() return.
//
//   rpc::Status status =
//       co_await stub->coro()->Get(&context, request, &response);
//
//   auto reader = stub->coro()->List(&context, request);
//   while (co_await reader->Read(&item)) Use(item);
//   status = co_await reader->Finish();
//
// A unary call begins when it is awaited, a stream when its object is made.
// Neither takes a thread, and what is done at once does not suspend the
// coroutine. Messages are needed until the co_await they are given to is over.
//
// Beyond gRPC's shape: attachments, each beside a message (as in
// sync_stream.h).
//
// An object must go before its context; that ends a call that still runs, with
// CANCELLED.
//
// Thread rule: as Task's (coroutine.h). One coroutine may read while another
// one writes; while one of them awaits, the object must not go (that is logged:
// who awaited goes on with false, or with CANCELLED of Finish, and must not use
// it again). What a call received is read from its context as in
// client_context.h.
#ifndef VERBENA_RPC_CLIENT_COROUTINE_H_
#define VERBENA_RPC_CLIENT_COROUTINE_H_

#include <coroutine>
#include <memory>
#include <utility>

#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_callback.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_stream.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/stream_awaiters.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc {

// A unary call, to be awaited once. The reactor of the call is in it, and so in
// the frame of the coroutine.
class [[nodiscard]] CoroUnaryCall final : private ClientUnaryReactor {
 public:
  // For generated code.
  template <class Request, class Response>
  CoroUnaryCall(ChannelInterface* channel, const internal::RpcMethod& method,
                ClientContext* context, const Request& request,
                Response* response) {
    internal::ClientCallbackUnaryFactory::Create(channel, method, context,
                                                 &request, response, this);
  }
  // One that is over, for stubs that a test makes.
  explicit CoroUnaryCall(Status status)
      : is_over_(true), status_(std::move(status)) {}

  bool await_ready() const noexcept { return is_over_; }
  void await_suspend(std::coroutine_handle<> awaiter) {
    awaiter_ = awaiter;
    // It may be over, and this be gone, before it returns.
    StartCall();
  }
  Status await_resume() { return std::move(status_); }

 private:
  void OnDone(const Status& status) override {
    status_ = status;
    awaiter_.resume();
  }

  const bool is_over_ = false;
  Status status_;
  std::coroutine_handle<> awaiter_;
};

namespace internal {

// What the three kinds of streams have in common.
class CoroClientStream {
 public:
  CoroClientStream(const CoroClientStream&) = delete;
  CoroClientStream& operator=(const CoroClientStream&) = delete;

  // The server's initial metadata is in the context; false: there will be none.
  auto WaitForInitialMetadata() {
    return OkAwaiter([this](StreamOperation* operation) {
      stream_->WaitForInitialMetadata(operation);
    });
  }

  class [[nodiscard]] FinishAwaiter final : public OperationAwaiter {
   public:
    FinishAwaiter(ClientStream& stream, MessageRef response)
        : stream_(stream), response_(response) {}

    bool await_suspend(std::coroutine_handle<> awaiter) {
      auto begin = [this](StreamOperation* operation) {
        stream_.Finish(/*discard=*/!response_.has_message(), response_,
                       operation);
      };
      return Suspend(awaiter, begin);
    }
    Status await_resume() { return stream_.TakeStatus(response_); }

   private:
    ClientStream& stream_;
    const MessageRef response_;
  };

  // How the call ended, as a Status. Once, when there is nothing more to write.
  // What was not read is thrown away; where the client streams and the status
  // is OK, the response is there.
  FinishAwaiter Finish() { return FinishAwaiter(*stream_, response_); }

 protected:
  CoroClientStream(ChannelInterface* channel, const RpcMethod& method,
                   ClientContext* context, ConstMessageRef request,
                   MessageRef response)
      : stream_(ClientStream::Create(channel, method, context,
                                     ClientStream::Completions::kMayTakeLong)),
        response_(response) {
    stream_->StartAtOnce(request);
  }
  ~CoroClientStream();

  ClientStream& stream() { return *stream_; }

 private:
  const std::shared_ptr<ClientStream> stream_;
  const MessageRef response_;  // none: the server streams
};

// What a stream of either kind adds to its base.
template <class R, class Base>
class CoroClientReading : public Base {
 public:
  // False: there is no further message, or it does not parse; Finish says why.
  auto Read(R* message) { return Read(message, nullptr); }
  // `attachment` gets what came beside the message; may be null.
  auto Read(R* message, BufferChain* attachment) {
    return ReadAwaiter<ClientStream>(this->stream(), message, attachment);
  }

 protected:
  using Base::Base;
};

template <class W, class Base>
class CoroClientWriting : public Base {
 public:
  // True when the message is on its way, and the next one may follow. False:
  // the call is over or ends, or a message of this direction was the last.
  auto Write(const W& message) { return Write(message, WriteOptions()); }
  auto Write(const W& message, WriteOptions options) {
    return WriteTo(this->stream(), message, std::move(options));
  }
  // No WritesDone is needed after it.
  auto WriteLast(const W& message, WriteOptions options) {
    return Write(message, std::move(options.set_last_message()));
  }
  // Half-close.
  auto WritesDone() {
    return OkAwaiter([stream = &this->stream()](StreamOperation* operation) {
      stream->WritesDone(operation);
    });
  }

 protected:
  using Base::Base;
};

}  // namespace internal

// The server streams.
template <class R>
class CoroClientReader final
    : public internal::CoroClientReading<R, internal::CoroClientStream> {
 public:
  // For generated code, as those below.
  template <class W>
  CoroClientReader(ChannelInterface* channel, const internal::RpcMethod& method,
                   ClientContext* context, const W& request)
      : CoroClientReader::CoroClientReading(channel, method, context, request,
                                            internal::MessageRef()) {}
};

// The client streams.
template <class W>
class CoroClientWriter final
    : public internal::CoroClientWriting<W, internal::CoroClientStream> {
 public:
  template <class R>
  CoroClientWriter(ChannelInterface* channel, const internal::RpcMethod& method,
                   ClientContext* context, R* response)
      : CoroClientWriter::CoroClientWriting(
            channel, method, context, internal::ConstMessageRef(), response) {}
};

// Both do.
template <class W, class R>
class CoroClientReaderWriter final
    : public internal::CoroClientWriting<
          W, internal::CoroClientReading<R, internal::CoroClientStream>> {
 public:
  CoroClientReaderWriter(ChannelInterface* channel,
                         const internal::RpcMethod& method,
                         ClientContext* context)
      : CoroClientReaderWriter::CoroClientWriting(channel, method, context,
                                                  internal::ConstMessageRef(),
                                                  internal::MessageRef()) {}
};

}  // namespace rpc

#endif  // VERBENA_RPC_CLIENT_COROUTINE_H_
