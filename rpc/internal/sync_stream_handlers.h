// Handlers of the synchronous API for methods that stream. Used by generated
// code. See sync_server_stream.h for where they run.
#ifndef VERBENA_RPC_INTERNAL_SYNC_STREAM_HANDLERS_H_
#define VERBENA_RPC_INTERNAL_SYNC_STREAM_HANDLERS_H_

#include <exception>
#include <functional>
#include <utility>

#include "rpc/internal/call_errors.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/sync_server_stream.h"
#include "rpc/server_context.h"
#include "rpc/status.h"
#include "rpc/sync_stream.h"

namespace rpc::internal {

// The client streams.
template <class ServiceType, class Request, class Response>
class ClientStreamingHandler final : public MethodHandler {
 public:
  using Function = Status (*)(ServiceType*, ServerContext*,
                              ServerReader<Request>*, Response*);

  ClientStreamingHandler(Function function, ServiceType* service)
      : function_(function), service_(service) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public SyncServerStream {
   public:
    explicit Call(const ClientStreamingHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    void RunHandler() override {
      ServerReader<Request> reader(this);
      Response response;
      try {
        Status status = handler_.function_(handler_.service_, context(),
                                           &reader, &response);
        RespondAndFinish(std::move(status), response);
      } catch (...) {
        FinishAfterThrow(std::current_exception());
      }
    }

    const ClientStreamingHandler& handler_;
  };

  const Function function_;
  ServiceType* const service_;
};

// The server streams.
template <class ServiceType, class Request, class Response>
class ServerStreamingHandler final : public MethodHandler {
 public:
  using Function = Status (*)(ServiceType*, ServerContext*, const Request*,
                              ServerWriter<Response>*);

  ServerStreamingHandler(Function function, ServiceType* service)
      : function_(function), service_(service) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public SyncServerStream {
   public:
    explicit Call(const ServerStreamingHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    MessageRef request() override { return &request_; }
    void RunHandler() override {
      ServerWriter<Response> writer(this);
      try {
        RespondAndFinish(handler_.function_(handler_.service_, context(),
                                            &request_, &writer),
                         ConstMessageRef());
      } catch (...) {
        FinishAfterThrow(std::current_exception());
      }
    }

    const ServerStreamingHandler& handler_;
    Request request_;
  };

  const Function function_;
  ServiceType* const service_;
};

// Both do.
template <class ServiceType, class Request, class Response>
class BidiStreamingHandler final : public MethodHandler {
 public:
  using Function = Status (*)(ServiceType*, ServerContext*,
                              ServerReaderWriter<Response, Request>*);

  BidiStreamingHandler(Function function, ServiceType* service)
      : function_(function), service_(service) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public SyncServerStream {
   public:
    explicit Call(const BidiStreamingHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    void RunHandler() override {
      ServerReaderWriter<Response, Request> stream(this);
      try {
        RespondAndFinish(
            handler_.function_(handler_.service_, context(), &stream),
            ConstMessageRef());
      } catch (...) {
        FinishAfterThrow(std::current_exception());
      }
    }

    const BidiStreamingHandler& handler_;
  };

  const Function function_;
  ServiceType* const service_;
};

// The client sends one message, and the handler sees a stream all the same.
template <class Streamer>
class StreamerHandler final : public MethodHandler {
 public:
  using Function = std::function<Status(ServerContext*, Streamer*)>;

  explicit StreamerHandler(Function function)
      : function_(std::move(function)) {}

  ServerCall* NewCall() override { return new Call(*this); }

 private:
  class Call final : public SyncServerStream {
   public:
    explicit Call(const StreamerHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return IsOneMessage(frame, error) && BeginReading(frame);
    }
    void RunHandler() override {
      Streamer streamer(this);
      try {
        Status status = handler_.function_(context(), &streamer);
        if (status.ok() && !streamer.has_responded()) {
          status = NothingWritten();
        }
        RespondAndFinish(std::move(status), ConstMessageRef());
      } catch (...) {
        FinishAfterThrow(std::current_exception());
      }
    }

    const StreamerHandler& handler_;
  };

  const Function function_;
};

template <class Request, class Response>
using StreamedUnaryHandler =
    StreamerHandler<ServerUnaryStreamer<Request, Response>>;
template <class Request, class Response>
using SplitServerStreamingHandler =
    StreamerHandler<ServerSplitStreamer<Request, Response>>;

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SYNC_STREAM_HANDLERS_H_
