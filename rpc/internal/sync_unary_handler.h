// Handlers of the synchronous API: a function that returns when it is done, and
// may block. Used by generated code.
//
// Where they run: see handler_pacer.h. The request is parsed on the polling
// thread in either case, so a call that waits for a thread holds no receive
// buffer.
#ifndef VERBENA_RPC_INTERNAL_SYNC_UNARY_HANDLER_H_
#define VERBENA_RPC_INTERNAL_SYNC_UNARY_HANDLER_H_

#include <exception>
#include <optional>

#include "absl/base/optimization.h"
#include "rpc/internal/handler_pacer.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/server_call.h"
#include "rpc/internal/thrown.h"
#include "rpc/server_context.h"
#include "rpc/status.h"

namespace rpc::internal {

// How long a handler takes that is timed.
class HandlerWatch {
 public:
  // The user's function is through. To post its response is not the handler's:
  // that takes as long as the device does, whichever thread does it. To
  // serialize a large one is, and so are interceptors.
  void OnReturned(const Status& status, ConstMessageRef response);
  // Until then, or until now.
  HandlerPacer::Clock::duration Took() const {
    return (returned_ ? *returned_ : HandlerPacer::Clock::now()) - start_;
  }

 private:
  const HandlerPacer::Clock::time_point start_ = HandlerPacer::Clock::now();
  std::optional<HandlerPacer::Clock::time_point> returned_;
};

class SyncServerCall : public ServerCall {
 protected:
  SyncServerCall() : ServerCall(&context_, /*has_on_complete=*/false) {}

  // Runs the user's function and responds. The call may be gone afterwards.
  // `watch` is null where nobody times it.
  virtual void RunHandler(HandlerWatch* watch) = 0;

  // For RunHandler, when the function is through: before anything is sent.
  void NoteReturn(HandlerWatch* watch, const Status& status,
                  ConstMessageRef response) {
    DropReceivedAttachment();
    if (ABSL_PREDICT_FALSE(watch != nullptr) && interception() == nullptr) {
      watch->OnReturned(status, response);
    }
  }

  // For a subclass's Run. `run_handler` is RunHandler, in line and not timed.
  template <class Function>
  void RunWith(Function run_handler) {
    HandlerPacer& pacer = method().pacer;
    if (ABSL_PREDICT_FALSE(pacer.offload() || pacer.IsInlineRunning())) {
      return RunOnExecutor();
    }
    pacer.BeginInline();
    if (ABSL_PREDICT_FALSE(pacer.ShouldTime())) return RunTimed();
    run_handler();
    pacer.EndInline();
  }

  ServerContext* context() { return &context_; }

 private:
  void RunTimed();
  // What OnClosed has to do is to give the object back, once the handler is
  // through. A large one is freed there instead.
  bool IsQuick() const override { return finished() && IsSmall(); }
  // On a thread of the executor.
  void RunTask() final;

  ServerContext context_;
};

template <class ServiceType, class Request, class Response,
          class BaseRequest = Request, class BaseResponse = Response>
class RpcMethodHandler final : public MethodHandler {
 public:
  // A lambda without captures is one.
  using Function = Status (*)(ServiceType*, ServerContext*, const Request*,
                              Response*);

  RpcMethodHandler(Function function, ServiceType* service)
      : function_(function), service_(service) {}

  ServerCall* NewCall() override { return new Call(*this); }
  bool ParsesWhatArrives() const override { return ProtobufMessage<Request>; }

 private:
  class Call final : public SyncServerCall {
   public:
    explicit Call(const RpcMethodHandler& handler) : handler_(handler) {
      SetOnlyRequest(&request_);
    }

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    MessageRef request() override { return &request_; }
    void Run() override {
      RunWith([this] { Call::RunHandler(nullptr); });
    }
    void RunHandler(HandlerWatch* watch) override {
      response_.Clear();
      try {
        const Status status = handler_.function_(handler_.service_, context(),
                                                 &request_, &response_);
        NoteReturn(watch, status, response_);
        RespondAndFinish(status, response_, /*last_act=*/true);
      } catch (...) {
        // Before it is told of, which may take longer than all else.
        NoteReturn(watch, Status(StatusCode::UNKNOWN, ""), ConstMessageRef());
        RespondAndFinish(StatusOfThrown(std::current_exception()), response_);
      }
    }

    const RpcMethodHandler& handler_;
    Request request_;
    Response response_;
  };

  const Function function_;
  ServiceType* const service_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SYNC_UNARY_HANDLER_H_
