#include "rpc/generic_service.h"

namespace rpc {

void AsyncGenericService::RequestCall(GenericServerContext* context,
                                      GenericServerAsyncReaderWriter* stream,
                                      CompletionQueue* call_queue,
                                      ServerCompletionQueue* notification_queue,
                                      void* tag) {
  handler_->Request({.context = context,
                     .responder = stream,
                     .call_queue = call_queue,
                     .notification_queue = notification_queue,
                     .tag = tag,
                     .path = &context->method_});
}

class CallbackGenericService::Handler::Call
    : public internal::CallbackServerStream {
 public:
  Call(CallbackGenericService& service, GenericCallbackServerContext* supplied)
      : CallbackServerStream(supplied), service_(service) {}

 private:
  bool DecodeRequest(IncomingFrame& frame, Status*) override {
    return BeginReading(frame);
  }
  internal::ServerStreamReactor* CallHandler() override {
    return service_.CreateReactor(generic_context());
  }

  CallbackGenericService& service_;
};

internal::ServerCall* CallbackGenericService::Handler::NewCall() {
  return new Call(service_, nullptr);
}

internal::ServerCall* CallbackGenericService::Handler::NewCallWith(
    ContextAllocator& allocator) {
  return new internal::WithSuppliedContext<Call, GenericCallbackServerContext>(
      service_, allocator, allocator.NewGenericCallbackServerContext());
}

}  // namespace rpc
