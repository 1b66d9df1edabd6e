// Handlers of the synchronous API for methods that stream. Used by generated
// code. See server_stream.h for where they run.
#ifndef VERBENA_RPC_INTERNAL_SYNC_STREAM_HANDLERS_H_
#define VERBENA_RPC_INTERNAL_SYNC_STREAM_HANDLERS_H_

#include "rpc/internal/method_handler.h"
#include "rpc/internal/server_stream.h"
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
  class Call final : public ServerStream {
   public:
    explicit Call(const ClientStreamingHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    void RunHandler() override {
      ServerReader<Request> reader(this);
      Response response;
      Status status =
          handler_.function_(handler_.service_, context(), &reader, &response);
      RespondAndFinish(std::move(status), &response);
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
  class Call final : public ServerStream {
   public:
    explicit Call(const ServerStreamingHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status* error) override {
      return DecodeOnlyMessage(frame, &request_, error);
    }
    void RunHandler() override {
      ServerWriter<Response> writer(this);
      RespondAndFinish(
          handler_.function_(handler_.service_, context(), &request_, &writer),
          nullptr);
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
  class Call final : public ServerStream {
   public:
    explicit Call(const BidiStreamingHandler& handler) : handler_(handler) {}

   private:
    bool DecodeRequest(IncomingFrame& frame, Status*) override {
      return BeginReading(frame);
    }
    void RunHandler() override {
      ServerReaderWriter<Response, Request> stream(this);
      RespondAndFinish(
          handler_.function_(handler_.service_, context(), &stream), nullptr);
    }

    const BidiStreamingHandler& handler_;
  };

  const Function function_;
  ServiceType* const service_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SYNC_STREAM_HANDLERS_H_
