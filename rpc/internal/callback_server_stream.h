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
#include "rpc/internal/supplied_context.h"
#include "rpc/server_context.h"
#include "rpc/server_stream_callback.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class CallbackServerStream : public ServerStream,
                             private Reactions,
                             private ServerStreamControl {
 protected:
  // Null: a context of its own.
  explicit CallbackServerStream(CallbackServerContext* supplied)
      : ServerStream(supplied == nullptr ? &own_context_ : supplied),
        context_(supplied == nullptr ? own_context_ : *supplied) {}
  // The same of a generic service.
  explicit CallbackServerStream(GenericCallbackServerContext* supplied)
      : CallbackServerStream(static_cast<CallbackServerContext*>(supplied)) {
    if (supplied != nullptr) generic_context_ = supplied;
  }

  // Calls the user's function; null where it gives no reactor.
  virtual ServerStreamReactor* CallHandler() = 0;
  // None: the server streams.
  virtual ConstMessageRef response() const { return ConstMessageRef(); }

  CallbackServerContext* context() { return &context_; }
  GenericCallbackServerContext* generic_context() { return generic_context_; }

  void OnComplete() override;

 private:
  void Run() final;
  void RunTask() final { Reactions::Run(); }
  void OnEnded(bool cancelled) final;

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

  GenericCallbackServerContext own_context_;
  CallbackServerContext& context_;
  GenericCallbackServerContext* generic_context_ = &own_context_;
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

  ServerCall* NewCall() override { return new Call(*this, nullptr); }
  ServerCall* NewCallWith(ContextAllocator& allocator) override {
    return new WithSuppliedContext<Call>(*this, allocator,
                                         allocator.NewCallbackServerContext());
  }

 private:
  class Call : public CallbackServerStream {
   public:
    Call(const CallbackClientStreamingHandler& handler,
         CallbackServerContext* supplied)
        : CallbackServerStream(supplied), handler_(handler) {}

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

  ServerCall* NewCall() override { return new Call(*this, nullptr); }
  ServerCall* NewCallWith(ContextAllocator& allocator) override {
    return new WithSuppliedContext<Call>(*this, allocator,
                                         allocator.NewCallbackServerContext());
  }

 private:
  class Call : public CallbackServerStream {
   public:
    Call(const CallbackServerStreamingHandler& handler,
         CallbackServerContext* supplied)
        : CallbackServerStream(supplied), handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    MessageRef request() override { return &request_; }
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

  ServerCall* NewCall() override { return new Call(*this, nullptr); }
  ServerCall* NewCallWith(ContextAllocator& allocator) override {
    return new WithSuppliedContext<Call>(*this, allocator,
                                         allocator.NewCallbackServerContext());
  }

 private:
  class Call : public CallbackServerStream {
   public:
    Call(const CallbackBidiHandler& handler, CallbackServerContext* supplied)
        : CallbackServerStream(supplied), handler_(handler) {}

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
