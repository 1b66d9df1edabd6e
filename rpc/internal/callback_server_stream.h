// A stream on the server whose handler is a reactor, and the handlers of the
// three kinds. Used by generated code.
//
// The handler returns its reactor at once, on the polling thread; a stream
// takes no thread.
#ifndef VERBENA_RPC_INTERNAL_CALLBACK_SERVER_STREAM_H_
#define VERBENA_RPC_INTERNAL_CALLBACK_SERVER_STREAM_H_

#include <atomic>
#include <functional>
#include <utility>

#include "rpc/buffer.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/reactions.h"
#include "rpc/internal/server_stream.h"
#include "rpc/internal/server_stream_reactor.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/server_context.h"
#include "rpc/server_stream_callback.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class CallbackServerStream : public ServerStream,
                             private Reactions,
                             private ServerStreamControl {
 protected:
  CallbackServerStream() : ServerStream(&context_) {}

  // Calls the user's function; null where it gives no reactor.
  virtual ServerStreamReactor* CallHandler() = 0;
  // None: the server streams.
  virtual ConstMessageRef response() const { return ConstMessageRef(); }

  GenericCallbackServerContext* context() { return &context_; }

 private:
  void Run() final;
  void RunTask() final { Reactions::Run(); }
  void OnEnded(bool cancelled) final;
  void OnComplete() final;

  // Reactions
  void React(Event event) final;
  void OnEnd() final { Finished(); }
  void PostReactions() final;

  // ServerStreamControl
  void StartSendInitialMetadata() final;
  void StartRead(MessageRef message, BufferChain* attachment) final;
  void StartWrite(ConstMessageRef message, WriteOptions options) final;
  void StartWriteAndFinish(ConstMessageRef message, WriteOptions options,
                           Status status) final;
  void Finish(Status status) final;
  // Whether it is the first.
  bool BeginFinish();

  GenericCallbackServerContext context_;
  ServerStreamReactor* reactor_ = nullptr;  // null: the handler gave none
  std::atomic<bool> finish_begun_{false};

  StreamMessage received_;
  MessageRef read_message_;
  BufferChain* read_attachment_ = nullptr;
  Operation metadata_{this, kInitialMetadata};
  Operation read_{this, kRead};
  Operation write_{this, kWrite};
};

// The client streams.
template <class Request, class Response>
class CallbackClientStreamingHandler final : public MethodHandler {
 public:
  using Function = std::function<ServerReadReactor<Request>*(
      CallbackServerContext*, Response*)>;

  explicit CallbackClientStreamingHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public CallbackServerStream {
   public:
    explicit Call(const CallbackClientStreamingHandler& handler)
        : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    ServerStreamReactor* CallHandler() override {
      response_.Clear();
      return handler_.function_(context(), &response_);
    }
    ConstMessageRef response() const override { return response_; }

    const CallbackClientStreamingHandler& handler_;
    Response response_;
  };

  const Function function_;
};

// The server streams.
template <class Request, class Response>
class CallbackServerStreamingHandler final : public MethodHandler {
 public:
  using Function = std::function<ServerWriteReactor<Response>*(
      CallbackServerContext*, const Request*)>;

  explicit CallbackServerStreamingHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public CallbackServerStream {
   public:
    explicit Call(const CallbackServerStreamingHandler& handler)
        : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    ServerStreamReactor* CallHandler() override {
      return handler_.function_(context(), &request_);
    }

    const CallbackServerStreamingHandler& handler_;
    Request request_;
  };

  const Function function_;
};

// Both do.
template <class Request, class Response>
class CallbackBidiHandler final : public MethodHandler {
 public:
  using Function = std::function<ServerBidiReactor<Request, Response>*(
      CallbackServerContext*)>;

  explicit CallbackBidiHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public CallbackServerStream {
   public:
    explicit Call(const CallbackBidiHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    ServerStreamReactor* CallHandler() override {
      return handler_.function_(context());
    }

    const CallbackBidiHandler& handler_;
  };

  const Function function_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CALLBACK_SERVER_STREAM_H_
