// Handlers that are coroutines, for the four kinds of methods. Used by
// generated code.
//
// A handler begins on the polling thread, once the request is parsed. Where it
// ends without having been suspended, its call costs what one of the
// synchronous API does, and the coroutine's frame.
#ifndef VERBENA_RPC_INTERNAL_COROUTINE_HANDLERS_H_
#define VERBENA_RPC_INTERNAL_COROUTINE_HANDLERS_H_

#include <functional>
#include <utility>

#include "rpc/internal/coroutine_server_stream.h"
#include "rpc/internal/handler_task.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/server_call.h"
#include "rpc/internal/task_promise.h"
#include "rpc/server_context.h"
#include "rpc/server_coroutine.h"
#include "rpc/status.h"

namespace rpc::internal {

class CoroutineServerCall : public ServerCall, private TaskWatcher {
 protected:
  CoroutineServerCall() : ServerCall(&context_) {}

  // Calls the user's function; none where it is not implemented.
  virtual StatusTask CallHandler() = 0;
  virtual ConstMessageRef response() const = 0;

  CallbackServerContext* context() { return &context_; }

 private:
  void Run() final;
  void OnTaskDone() final;
  void RunTask() final {}  // never posted

  CallbackServerContext context_;
  HandlerTask handler_;
};

template <class Request, class Response>
class CoroutineUnaryHandler final : public MethodHandler {
 public:
  using Function = std::function<StatusTask(CallbackServerContext*,
                                            const Request*, Response*)>;

  explicit CoroutineUnaryHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }
  bool ParsesWhatArrives() const override { return ProtobufMessage<Request>; }

 private:
  class Call final : public CoroutineServerCall {
   public:
    explicit Call(const CoroutineUnaryHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    MessageRef request() override { return &request_; }
    StatusTask CallHandler() override {
      response_.Clear();
      return handler_.function_(context(), &request_, &response_);
    }
    ConstMessageRef response() const override { return response_; }

    const CoroutineUnaryHandler& handler_;
    Request request_;
    Response response_;
  };

  const Function function_;
};

// The client streams.
template <class Request, class Response>
class CoroutineClientStreamingHandler final : public MethodHandler {
 public:
  using Function = std::function<StatusTask(
      CallbackServerContext*, CoroServerReader<Request>*, Response*)>;

  explicit CoroutineClientStreamingHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public CoroutineServerStream {
   public:
    explicit Call(const CoroutineClientStreamingHandler& handler)
        : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    StatusTask CallHandler() override {
      response_.Clear();
      return handler_.function_(context(), &reader_, &response_);
    }
    ConstMessageRef response() const override { return response_; }

    const CoroutineClientStreamingHandler& handler_;
    CoroServerReader<Request> reader_{this};
    Response response_;
  };

  const Function function_;
};

// The server streams.
template <class Request, class Response>
class CoroutineServerStreamingHandler final : public MethodHandler {
 public:
  using Function = std::function<StatusTask(
      CallbackServerContext*, const Request*, CoroServerWriter<Response>*)>;

  explicit CoroutineServerStreamingHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public CoroutineServerStream {
   public:
    explicit Call(const CoroutineServerStreamingHandler& handler)
        : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    MessageRef request() override { return &request_; }
    StatusTask CallHandler() override {
      return handler_.function_(context(), &request_, &writer_);
    }

    const CoroutineServerStreamingHandler& handler_;
    Request request_;
    CoroServerWriter<Response> writer_{this};
  };

  const Function function_;
};

// Both do.
template <class Request, class Response>
class CoroutineBidiHandler final : public MethodHandler {
 public:
  using Function = std::function<StatusTask(
      CallbackServerContext*, CoroServerReaderWriter<Response, Request>*)>;

  explicit CoroutineBidiHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public CoroutineServerStream {
   public:
    explicit Call(const CoroutineBidiHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    StatusTask CallHandler() override {
      return handler_.function_(context(), &stream_);
    }

    const CoroutineBidiHandler& handler_;
    CoroServerReaderWriter<Response, Request> stream_{this};
  };

  const Function function_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_COROUTINE_HANDLERS_H_
