// The reactor of a unary call on the client: the callback API for those who
// want to hear more than that the call is over.
//
//   class Getter final : public rpc::ClientUnaryReactor {
//    public:
//     Getter(Store::Stub* stub, std::string key) {
//       request_.set_key(std::move(key));
//       stub->async()->Get(&context_, &request_, &response_, this);
//       StartCall();
//     }
//     void OnDone(const rpc::Status& status) override { ...; delete this; }
//    private:
//     rpc::ClientContext context_;
//     GetRequest request_;
//     GetResponse response_;
//   };
//
// Thread rule: reactions run one at a time, on whichever thread drives the
// transport, and must not block for long; a blocking call of the same channel
// is fine. They hold no lock, and never run on the stack of StartCall.
#ifndef VERBENA_RPC_CLIENT_CALLBACK_H_
#define VERBENA_RPC_CLIENT_CALLBACK_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_unary_call.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/unary_over_stream.h"
#include "rpc/status.h"

namespace rpc {

class ClientUnaryReactor;

namespace internal {

// The call of a reactor; a part of it.
class ReactorCall final : public ClientUnaryCall, private Executor::Task {
 public:
  explicit ReactorCall(ClientUnaryReactor* reactor) : reactor_(*reactor) {}

  void Bind(ChannelInterface* channel, const RpcMethod& method,
            ClientContext* context, ConstMessageRef request,
            MessageRef response);
  void StartBound();

 private:
  // Where the channel has no transport: of a channel with interceptors, or of
  // one that was made in vain.
  void BindWithoutTransport(const RpcMethod& method);
  void StartWithoutTransport();

  bool OnOnlyMessage(std::string_view message, Buffer* both) override;
  void OnDone() override;
  void DoneElsewhere() override;
  void OnInitialMetadata() override;
  // OnDone, within a CallbackScope.
  void TellDone();
  void RunTask() override { OnDone(); }

  ClientUnaryReactor& reactor_;
  std::shared_ptr<ChannelInterface> channel_;  // null: not bound
  Beginning bound_ = {};
  std::unique_ptr<UnaryStreamReactor> over_stream_;  // with interceptors
};

struct ClientCallbackUnaryFactory;

}  // namespace internal

class ClientUnaryReactor {
 public:
  ClientUnaryReactor() : call_(this) {}
  virtual ~ClientUnaryReactor() = default;
  ClientUnaryReactor(const ClientUnaryReactor&) = delete;
  ClientUnaryReactor& operator=(const ClientUnaryReactor&) = delete;

  // Sends the request. REQUIRES: the reactor was given to a method of a stub,
  // and the stub lives. Once a call; a reactor may serve another one from
  // OnDone on.
  void StartCall() { call_.StartBound(); }

  // Server's initial metadata can be read from the context. Not called for a
  // call that failed before there were any.
  virtual void OnReadInitialMetadataDone(bool ok) {}

  // The call is over: the last reaction, always. The response is there where
  // `status` is OK. May destroy the reactor, the context and the stub.
  virtual void OnDone(const Status& status) {}

 private:
  friend class internal::ReactorCall;
  friend struct internal::ClientCallbackUnaryFactory;

  internal::ReactorCall call_;
};

namespace internal {

// Used by generated code.
struct ClientCallbackUnaryFactory {
  template <class Request, class Response, class BaseRequest = Request,
            class BaseResponse = Response>
  static void Create(ChannelInterface* channel, const RpcMethod& method,
                     ClientContext* context, const Request* request,
                     Response* response, ClientUnaryReactor* reactor) {
    reactor->call_.Bind(channel, method, context, *request, response);
  }
};

}  // namespace internal
}  // namespace rpc

#endif  // VERBENA_RPC_CLIENT_CALLBACK_H_
