// Handlers of the callback API: a function that returns a reactor at once, on
// the polling thread. Used by generated code.
#ifndef VERBENA_RPC_INTERNAL_CALLBACK_UNARY_HANDLER_H_
#define VERBENA_RPC_INTERNAL_CALLBACK_UNARY_HANDLER_H_

#include <functional>
#include <utility>

#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/server_call.h"
#include "rpc/server_callback.h"
#include "rpc/server_context.h"
#include "rpc/status.h"

namespace rpc::internal {

class CallbackServerCall : public ServerCall, private ServerCallbackUnary {
 protected:
  CallbackServerCall() : ServerCall(&context_) {}

  // Calls the user's function; null where it gives no reactor.
  virtual ServerUnaryReactor* CallHandler() = 0;
  virtual ConstMessageRef response() const = 0;

  CallbackServerContext* context() { return &context_; }

 private:
  void Run() final;
  void OnCutOff() final;
  void OnInitialMetadataSent(bool ok) final;
  // Finish may have the user's locks around it: OnDone goes to another thread.
  void CompleteLate() final;
  void RunTask() final {
    owes_unsent_metadata() ? ReportUnsentMetadata() : Complete();
  }
  void OnComplete() final;

  // ServerCallbackUnary
  void Finish(Status status) final;
  void SendInitialMetadata() final;

  CallbackServerContext context_;
  ServerUnaryReactor* reactor_ = nullptr;  // null: the handler gave none
};

template <class Request, class Response>
class CallbackUnaryHandler final : public MethodHandler {
 public:
  using Function = std::function<ServerUnaryReactor*(
      CallbackServerContext*, const Request*, Response*)>;

  explicit CallbackUnaryHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public CallbackServerCall {
   public:
    explicit Call(const CallbackUnaryHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    ServerUnaryReactor* CallHandler() override {
      response_.Clear();
      return handler_.function_(context(), &request_, &response_);
    }
    ConstMessageRef response() const override { return response_; }

    const CallbackUnaryHandler& handler_;
    Request request_;
    Response response_;
  };

  const Function function_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CALLBACK_UNARY_HANDLER_H_
