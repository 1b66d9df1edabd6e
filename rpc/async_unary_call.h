// Unary calls of the asynchronous API, on both sides. See completion_queue.h.
//
//   std::unique_ptr<rpc::ClientAsyncResponseReader<HelloReply>> call =
//       stub->AsyncSayHello(&context, request, &queue);
//   call->Finish(&reply, &status, tag);
//
// The context must live until the last event of the call was taken; the object
// itself may go before.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_ASYNC_UNARY_CALL_H_
#define VERBENA_RPC_ASYNC_UNARY_CALL_H_

#include <utility>

#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/async_server_call.h"
#include "rpc/internal/client_async_call.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/server_context.h"
#include "rpc/status.h"

namespace rpc {

namespace internal {
template <class R>
class ClientAsyncResponseReaderFactory;
}  // namespace internal

template <class R>
class ClientAsyncResponseReaderInterface {
 public:
  virtual ~ClientAsyncResponseReaderInterface() = default;

  // Begins a call that was prepared. Gives no event.
  virtual void StartCall() = 0;
  // Done when the server's initial metadata is in the context. At most once,
  // before Finish.
  virtual void ReadInitialMetadata(void* tag) = 0;
  // Done when the call is over: `*status` is set, and `*message` where it is
  // OK. Once, after StartCall.
  virtual void Finish(R* message, Status* status, void* tag) = 0;
};

template <class R>
class ClientAsyncResponseReader final
    : public ClientAsyncResponseReaderInterface<R> {
 public:
  void StartCall() override { call_->StartCall(); }
  void ReadInitialMetadata(void* tag) override {
    call_->ReadInitialMetadata(tag);
  }
  void Finish(R* message, Status* status, void* tag) override {
    call_->Finish(message, status, tag);
  }

 private:
  friend class internal::ClientAsyncResponseReaderFactory<R>;
  explicit ClientAsyncResponseReader(internal::ClientAsyncCall::Ptr call)
      : call_(std::move(call)) {}

  const internal::ClientAsyncCall::Ptr call_;
};

namespace internal {

// What generated stubs call. The caller owns what Create returns, and starts
// it.
template <class R>
class ClientAsyncResponseReaderFactory {
 public:
  template <class W>
  static ClientAsyncResponseReader<R>* Create(ChannelInterface* channel,
                                              CompletionQueue* queue,
                                              const RpcMethod& method,
                                              ClientContext* context,
                                              const W& request) {
    return new ClientAsyncResponseReader<R>(ClientAsyncCall::Create(
        channel, queue, method, context, request, MessageRef()));
  }
};

}  // namespace internal

// Answers a unary call that AsyncService::RequestX gave.
template <class W>
class ServerAsyncResponseWriter final
    : public internal::ServerAsyncResponder<
          internal::ServerAsyncStreamingInterface> {
 public:
  explicit ServerAsyncResponseWriter(ServerContext* context)
      : ServerAsyncResponseWriter::ServerAsyncResponder(context) {}

  // Ends the call: with `message` where `status` is OK, else with it alone.
  void Finish(const W& message, const Status& status, void* tag) {
    call().Finish(message, status, tag);
  }
  void FinishWithError(const Status& status, void* tag) {
    call().Finish(internal::ConstMessageRef(), status, tag);
  }
};

}  // namespace rpc

#endif  // VERBENA_RPC_ASYNC_UNARY_CALL_H_
