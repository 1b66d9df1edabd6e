// Handlers that are coroutines: what a service's CoroutineService, or
// WithCoroutineMethod_X, gives to the functions that it calls.
//
//   class Store final : public KeyValue::CoroutineService {
//     rpc::Task<rpc::Status> Get(rpc::CallbackServerContext* context,
//                                const GetRequest* request,
//                                GetResponse* response) override {
//       rpc::ClientContext backend;
//       co_return co_await backend_->coro()->Get(&backend, *request, response);
//     }
//     rpc::Task<rpc::Status> List(
//         rpc::CallbackServerContext* context, const ListRequest* request,
//         rpc::CoroServerWriter<Entry>* writer) override {
//       for (const Entry& entry : entries_) {
//         if (!co_await writer->Write(entry)) break;
//       }
//       co_return rpc::Status::OK;
//     }
//   };
//
// The call ends with what the coroutine returns, when its variables are gone;
// with UNKNOWN where it throws, which the server logs; with UNIMPLEMENTED where
// the function returns no coroutine (`return {};`). Context, messages and
// streams are valid until then.
//
// A call that is cut off wakes a handler that awaits its stream, with false.
// One that awaits something else learns of it from context->IsCancelled(). The
// server's Shutdown waits for all of them.
//
// Beyond gRPC's shape: attachments, each beside a message (as in
// sync_stream.h).
//
// Thread rule: as Task's (coroutine.h). A handler begins on the thread that
// drives the transport, and must not block for long. One coroutine may read
// while another one writes; all of them must have ended before the handler
// does.
#ifndef VERBENA_RPC_SERVER_COROUTINE_H_
#define VERBENA_RPC_SERVER_COROUTINE_H_

#include <utility>

#include "rpc/buffer.h"
#include "rpc/internal/coroutine_server_stream.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/stream_awaiters.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/write_options.h"

namespace rpc {
namespace internal {

// What the three kinds of streams have in common.
class CoroServerStream {
 public:
  // For generated code.
  explicit CoroServerStream(CoroutineServerStream* stream) : stream_(*stream) {}
  CoroServerStream(const CoroServerStream&) = delete;
  CoroServerStream& operator=(const CoroServerStream&) = delete;

  // Sends the initial metadata now, and not with the first message; at most
  // once. False: the call ended first.
  auto SendInitialMetadata() {
    return OkAwaiter([stream = &stream_](StreamOperation* operation) {
      stream->SendInitialMetadata(operation);
    });
  }

 protected:
  ~CoroServerStream() = default;
  CoroutineServerStream& stream() { return stream_; }

 private:
  CoroutineServerStream& stream_;
};

// What a stream of either kind adds to its base.
template <class R, class Base>
class CoroServerReading : public Base {
 public:
  using Base::Base;

  // False: there is no further message, or it does not parse.
  auto Read(R* message) { return Read(message, nullptr); }
  // `attachment` gets what came beside the message; may be null.
  auto Read(R* message, BufferChain* attachment) {
    return ReadAwaiter<CoroutineServerStream>(this->stream(), message,
                                              attachment);
  }
};

template <class W, class Base>
class CoroServerWriting : public Base {
 public:
  using Base::Base;

  // True when the message is on its way, and the next one may follow. False:
  // nobody will read it.
  auto Write(const W& message) { return Write(message, WriteOptions()); }
  auto Write(const W& message, WriteOptions options) {
    return WriteTo(this->stream(), message, std::move(options));
  }
};

}  // namespace internal

// The client streams; the response goes with the status, where it is OK.
template <class R>
class CoroServerReader final
    : public internal::CoroServerReading<R, internal::CoroServerStream> {
 public:
  using CoroServerReader::CoroServerReading::CoroServerReading;
};

// The server streams.
template <class W>
class CoroServerWriter final
    : public internal::CoroServerWriting<W, internal::CoroServerStream> {
 public:
  using CoroServerWriter::CoroServerWriting::CoroServerWriting;
};

// Both do.
template <class W, class R>
class CoroServerReaderWriter final
    : public internal::CoroServerWriting<
          W, internal::CoroServerReading<R, internal::CoroServerStream>> {
 public:
  using CoroServerReaderWriter::CoroServerWriting::CoroServerWriting;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_COROUTINE_H_
