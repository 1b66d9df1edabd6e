// Handlers of the callback API: a function that returns a reactor at once, on
// the polling thread. Used by generated code.
#ifndef VERBENA_RPC_INTERNAL_CALLBACK_UNARY_HANDLER_H_
#define VERBENA_RPC_INTERNAL_CALLBACK_UNARY_HANDLER_H_

#include <atomic>
#include <functional>
#include <utility>

#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/server_call.h"
#include "rpc/internal/supplied_context.h"
#include "rpc/message_allocator.h"
#include "rpc/server_callback.h"
#include "rpc/server_context.h"
#include "rpc/status.h"

namespace rpc::internal {

class CallbackServerCall : public ServerCall, private ServerCallbackUnary {
 protected:
  // Null: a context of its own.
  explicit CallbackServerCall(CallbackServerContext* supplied)
      : ServerCall(supplied == nullptr ? &own_context_ : supplied),
        context_(supplied == nullptr ? own_context_ : *supplied) {}

  // Calls the user's function; null where it gives no reactor.
  virtual ServerUnaryReactor* CallHandler() = 0;
  virtual ConstMessageRef response() const = 0;

  CallbackServerContext* context() { return &context_; }
  // What the context's GetRpcAllocatorState says.
  void SetAllocatorState(RpcAllocatorState* state) {
    context_.allocator_state_ = state;
  }
  void OnComplete() override;

 private:
  void Run() final;
  void OnCutOff() final;
  void OnInitialMetadataSent(bool ok) final;
  void OnInitialMetadataUnsent() final;
  // Finish may have the user's locks around it: OnDone goes to another thread.
  void CompleteLate() final;
  void RunTask() final {
    owes_unsent_metadata() ? ReportUnsentMetadata() : Complete();
  }

  // ServerCallbackUnary
  void Finish(Status status) final;
  void SendInitialMetadata() final;

  CallbackServerContext own_context_;
  CallbackServerContext& context_;
  // Null: the handler gave none, or not yet. The default reactor may have
  // metadata sent, which is told on another thread, before that is known here.
  std::atomic<ServerUnaryReactor*> reactor_{nullptr};
};

template <class Request, class Response>
class CallbackUnaryHandler final : public MethodHandler {
 public:
  using Function = std::function<ServerUnaryReactor*(
      CallbackServerContext*, const Request*, Response*)>;

  explicit CallbackUnaryHandler(Function function)
      : function_(std::move(function)) {}

  // The methods' messages are from `allocator`, which must outlive the server.
  // Before the server is built.
  void SetMessageAllocator(MessageAllocator<Request, Response>* allocator) {
    allocator_ = allocator;
  }

  ServerCall* NewCall() override {
    if (allocator_ != nullptr) return new AllocatedCall(*this, nullptr);
    return new Call(*this, nullptr);
  }
  bool ParsesWhatArrives() const override { return ProtobufMessage<Request>; }
  ServerCall* NewCallWith(ContextAllocator& allocator) override {
    CallbackServerContext* const context = allocator.NewCallbackServerContext();
    if (allocator_ != nullptr) {
      return new WithSuppliedContext<AllocatedCall>(*this, allocator, context);
    }
    return new WithSuppliedContext<Call>(*this, allocator, context);
  }

 private:
  class Call : public CallbackServerCall {
   public:
    Call(const CallbackUnaryHandler& handler, CallbackServerContext* supplied)
        : CallbackServerCall(supplied), handler_(handler) {
      SetOnlyRequest(&request_);
    }

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    MessageRef request() override { return &request_; }
    ServerUnaryReactor* CallHandler() override {
      response_.Clear();
      return handler_.function_(context(), &request_, &response_);
    }
    ConstMessageRef response() const override { return response_; }

    const CallbackUnaryHandler& handler_;
    Request request_;
    Response response_;
  };

  // With messages of the user's.
  class AllocatedCall : public CallbackServerCall {
   public:
    AllocatedCall(const CallbackUnaryHandler& handler,
                  CallbackServerContext* supplied)
        : CallbackServerCall(supplied), handler_(handler) {}

   protected:
    void OnComplete() override {
      CallbackServerCall::OnComplete();
      if (messages_ != nullptr) std::exchange(messages_, nullptr)->Release();
      SetAllocatorState(nullptr);
    }

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      // They are there where the request comes in several frames.
      if (messages_ == nullptr) {
        messages_ = handler_.allocator_->AllocateMessages();
      }
      if (messages_ != nullptr) {
        return DecodeOnlyMessage(frame, messages_->request(), error);
      }
      *error = Status(StatusCode::RESOURCE_EXHAUSTED,
                      "the method's MessageAllocator gave no messages");
      return false;
    }
    MessageRef request() override { return messages_->request(); }
    ServerUnaryReactor* CallHandler() override {
      SetAllocatorState(messages_);
      return handler_.function_(context(), messages_->request(),
                                messages_->response());
    }
    ConstMessageRef response() const override { return *messages_->response(); }

    const CallbackUnaryHandler& handler_;
    MessageHolder<Request, Response>* messages_ = nullptr;
  };

  const Function function_;
  MessageAllocator<Request, Response>* allocator_ = nullptr;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CALLBACK_UNARY_HANDLER_H_
