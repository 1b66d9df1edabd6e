// A stub for methods that are known by name only: for proxies, tools, and
// formats that are not protobuf's.
//
//   rpc::GenericStub stub(channel);
//   auto call = stub.PrepareUnaryCall(&context, "/greet.Greeter/Hello",
//                                     request, &queue);
//   call->StartCall();
//   call->Finish(&response, &status, tag);
//
// Messages are of any type with SerializationTraits; GenericStub's are bytes. A
// method of any kind may be called as a stream of both directions.
//
// Thread rule: every function may be called from any thread.
#ifndef VERBENA_RPC_GENERIC_STUB_H_
#define VERBENA_RPC_GENERIC_STUB_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "rpc/async_stream.h"
#include "rpc/async_unary_call.h"
#include "rpc/byte_buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_callback.h"
#include "rpc/client_context.h"
#include "rpc/client_stream_callback.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/client_unary_call.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/status.h"
#include "rpc/stub_options.h"

namespace rpc {

using GenericClientAsyncReaderWriter =
    ClientAsyncReaderWriter<ByteBuffer, ByteBuffer>;
using GenericClientAsyncResponseReader = ClientAsyncResponseReader<ByteBuffer>;

template <class Request, class Response>
class TemplatedGenericStub final {
 public:
  explicit TemplatedGenericStub(std::shared_ptr<ChannelInterface> channel)
      : channel_(std::move(channel)) {}

  // ---- By completion queue; see async_stream.h and async_unary_call.h.

  // Not started.
  std::unique_ptr<ClientAsyncReaderWriter<Request, Response>> PrepareCall(
      ClientContext* context, const std::string& method,
      CompletionQueue* queue) {
    return MakeStream(context, method, queue, /*start=*/false, nullptr);
  }
  std::unique_ptr<ClientAsyncResponseReader<Response>> PrepareUnaryCall(
      ClientContext* context, const std::string& method, const Request& request,
      CompletionQueue* queue) {
    using Factory = internal::ClientAsyncResponseReaderFactory<Response>;
    return std::unique_ptr<ClientAsyncResponseReader<Response>>(Factory::Create(
        channel_.get(), queue, Unary(method), context, request));
  }
  // Started.
  std::unique_ptr<ClientAsyncReaderWriter<Request, Response>> Call(
      ClientContext* context, const std::string& method, CompletionQueue* queue,
      void* tag) {
    return MakeStream(context, method, queue, /*start=*/true, tag);
  }

  // ---- By callback; see client_callback.h and client_stream_callback.h.

  void UnaryCall(ClientContext* context, const std::string& method,
                 StubOptions options, const Request* request,
                 Response* response, std::function<void(Status)> callback) {
    internal::CallbackUnaryCall(channel_.get(), Unary(method, options), context,
                                request, response, std::move(callback));
  }
  void PrepareUnaryCall(ClientContext* context, const std::string& method,
                        StubOptions options, const Request* request,
                        Response* response, ClientUnaryReactor* reactor) {
    internal::ClientCallbackUnaryFactory::Create(
        channel_.get(), Unary(method, options), context, request, response,
        reactor);
  }
  void PrepareBidiStreamingCall(ClientContext* context,
                                const std::string& method, StubOptions options,
                                ClientBidiReactor<Request, Response>* reactor) {
    internal::ClientCallbackReaderWriterFactory<Request, Response>::Create(
        channel_.get(), Bidi(method, options), context, reactor);
  }

 private:
  internal::RpcMethod Unary(const std::string& method,
                            const StubOptions& options = {}) const {
    return internal::RpcMethod(method.c_str(), options.suffix_for_stats(),
                               internal::RpcMethod::NORMAL_RPC, channel_);
  }
  internal::RpcMethod Bidi(const std::string& method,
                           const StubOptions& options = {}) const {
    return internal::RpcMethod(method.c_str(), options.suffix_for_stats(),
                               internal::RpcMethod::BIDI_STREAMING, channel_);
  }
  std::unique_ptr<ClientAsyncReaderWriter<Request, Response>> MakeStream(
      ClientContext* context, const std::string& method, CompletionQueue* queue,
      bool start, void* tag) {
    using Factory = internal::ClientAsyncReaderWriterFactory<Request, Response>;
    return std::unique_ptr<ClientAsyncReaderWriter<Request, Response>>(
        Factory::Create(channel_.get(), queue, Bidi(method), context, start,
                        tag));
  }

  const std::shared_ptr<ChannelInterface> channel_;
};

using GenericStub = TemplatedGenericStub<ByteBuffer, ByteBuffer>;

}  // namespace rpc

#endif  // VERBENA_RPC_GENERIC_STUB_H_
