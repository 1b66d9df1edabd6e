// Services for methods that nobody registered: they get the calls' names and
// bytes, and answer with bytes. For proxies, tests, and formats that are not
// protobuf's. All four kinds of method are streams here.
//
//   class Proxy final : public rpc::CallbackGenericService {
//     rpc::ServerGenericBidiReactor* CreateReactor(
//         rpc::GenericCallbackServerContext* context) override {
//       return new Forwarder(context->method());
//     }
//   };
//   builder.RegisterCallbackGenericService(&proxy);
//
// Thread rule: as the API that each is of.
#ifndef VERBENA_RPC_GENERIC_SERVICE_H_
#define VERBENA_RPC_GENERIC_SERVICE_H_

#include <memory>

#include "rpc/async_stream.h"
#include "rpc/async_unary_call.h"
#include "rpc/byte_buffer.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/async_server_call.h"
#include "rpc/internal/callback_server_stream.h"
#include "rpc/internal/method_handler.h"
#include "rpc/server_context.h"
#include "rpc/server_stream_callback.h"

namespace rpc {

using GenericServerAsyncReaderWriter =
    ServerAsyncReaderWriter<ByteBuffer, ByteBuffer>;
// Of methods that a service has as bytes (WithRawMethod_X,
// WithGenericMethod_X).
using GenericServerAsyncReader = ServerAsyncReader<ByteBuffer, ByteBuffer>;
using GenericServerAsyncWriter = ServerAsyncWriter<ByteBuffer>;
using GenericServerAsyncResponseWriter = ServerAsyncResponseWriter<ByteBuffer>;

using ServerGenericBidiReactor = ServerBidiReactor<ByteBuffer, ByteBuffer>;

// The asynchronous API's. Must outlive its server's calls; of one server.
class AsyncGenericService final {
 public:
  AsyncGenericService() = default;
  AsyncGenericService(const AsyncGenericService&) = delete;
  AsyncGenericService& operator=(const AsyncGenericService&) = delete;

  // Asks for a call; see Service::RequestAsyncUnary.
  void RequestCall(GenericServerContext* context,
                   GenericServerAsyncReaderWriter* stream,
                   CompletionQueue* call_queue,
                   ServerCompletionQueue* notification_queue, void* tag);

 private:
  friend class ServerBuilder;

  const std::shared_ptr<internal::AsyncMethodHandler> handler_ =
      std::make_shared<internal::AsyncMethodHandler>(/*one_message=*/false);
};

// The callback API's. Must outlive its servers' calls.
class CallbackGenericService {
 public:
  CallbackGenericService() : handler_(std::make_shared<Handler>(this)) {}
  virtual ~CallbackGenericService() = default;
  CallbackGenericService(const CallbackGenericService&) = delete;
  CallbackGenericService& operator=(const CallbackGenericService&) = delete;

  // A call came. Null: the method is unknown.
  virtual ServerGenericBidiReactor* CreateReactor(
      GenericCallbackServerContext* /*context*/) {
    return nullptr;
  }

 private:
  friend class ServerBuilder;

  class Handler final : public internal::MethodHandler {
   public:
    explicit Handler(CallbackGenericService* service) : service_(*service) {}
    internal::ServerCall* NewCall() override;
    internal::ServerCall* NewCallWith(ContextAllocator& allocator) override;

   private:
    class Call;
    CallbackGenericService& service_;
  };

  const std::shared_ptr<Handler> handler_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_GENERIC_SERVICE_H_
