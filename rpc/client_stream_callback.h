// The reactors of streams on the client: the callback API.
//
//   class Lister final : public rpc::ClientReadReactor<Feature> {
//    public:
//     Lister(RouteGuide::Stub* stub, const Area& area) {
//       stub->async()->ListFeatures(&context_, &area, this);
//       StartRead(&feature_);
//       StartCall();
//     }
//     void OnReadDone(bool ok) override {
//       if (!ok) return;  // OnDone follows
//       Use(feature_);
//       StartRead(&feature_);
//     }
//     void OnDone(const rpc::Status& status) override { ...; delete this; }
//    private:
//     rpc::ClientContext context_;
//     Feature feature_;
//   };
//
// Each Start is answered by one reaction, which says whether it went well; a
// call that is over answers false. At most one read, one write and one
// StartWritesDone at a time. Messages are needed until the reaction.
//
// What is started outside of reactions, after StartCall, needs a hold
// (AddHold before StartCall): without one the call may be done by then.
//
// Beyond gRPC: attachments, each beside a message.
//
// Thread rule: Starts from any thread, one at a time of each kind. Reactions
// run one at a time, on whichever thread drives the transport, and must not
// block for long. They hold no lock, and never run on the stack of a Start.
#ifndef VERBENA_RPC_CLIENT_STREAM_CALLBACK_H_
#define VERBENA_RPC_CLIENT_STREAM_CALLBACK_H_

#include <utility>

#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_reactor_stream.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc {

namespace internal {
template <class Response>
class ClientCallbackReaderFactory;
template <class Request>
class ClientCallbackWriterFactory;
template <class Request, class Response>
class ClientCallbackReaderWriterFactory;

// What a reactor of either kind adds to its base.
template <class Response, class Base>
class ClientReading : public Base {
 public:
  void StartRead(Response* message) { StartRead(message, nullptr); }
  // `attachment` gets what came beside the message; may be null.
  void StartRead(Response* message, BufferChain* attachment) {
    this->stream().Read(message, attachment);
  }
  // False: there is no further message, or it does not parse, which ends the
  // call; OnDone says why.
  void OnReadDone(bool /*ok*/) override {}
};

template <class Request, class Base>
class ClientWriting : public Base {
 public:
  void StartWrite(const Request* message) {
    StartWrite(message, WriteOptions());
  }
  void StartWrite(const Request* message, WriteOptions options) {
    this->stream().Write(*message, std::move(options));
  }
  // The last: no StartWritesDone is needed.
  void StartWriteLast(const Request* message, WriteOptions options) {
    StartWrite(message, std::move(options.set_last_message()));
  }
  // Half-close.
  void StartWritesDone() { this->stream().WritesDone(); }

  // The message is on its way, and the next may be started. False: the call is
  // over, or will be.
  void OnWriteDone(bool /*ok*/) override {}
  void OnWritesDoneDone(bool /*ok*/) override {}
};

}  // namespace internal

// The server streams.
template <class Response>
class ClientReadReactor
    : public internal::ClientReading<Response, internal::ClientStreamReactor> {
};

// The client streams; the response is there when OnDone's status is OK.
template <class Request>
class ClientWriteReactor
    : public internal::ClientWriting<Request, internal::ClientStreamReactor> {};

// Both do.
template <class Request, class Response>
class ClientBidiReactor
    : public internal::ClientWriting<
          Request,
          internal::ClientReading<Response, internal::ClientStreamReactor>> {};

namespace internal {

// Used by generated code.
template <class Response>
class ClientCallbackReaderFactory {
 public:
  template <class Request>
  static void Create(ChannelInterface* channel, const RpcMethod& method,
                     ClientContext* context, const Request* request,
                     ClientReadReactor<Response>* reactor) {
    ClientReactorStream::Create(channel, method, context, *request,
                                MessageRef(), reactor);
  }
};

template <class Request>
class ClientCallbackWriterFactory {
 public:
  template <class Response>
  static void Create(ChannelInterface* channel, const RpcMethod& method,
                     ClientContext* context, Response* response,
                     ClientWriteReactor<Request>* reactor) {
    ClientReactorStream::Create(channel, method, context, ConstMessageRef(),
                                response, reactor);
  }
};

template <class Request, class Response>
class ClientCallbackReaderWriterFactory {
 public:
  static void Create(ChannelInterface* channel, const RpcMethod& method,
                     ClientContext* context,
                     ClientBidiReactor<Request, Response>* reactor) {
    ClientReactorStream::Create(channel, method, context, ConstMessageRef(),
                                MessageRef(), reactor);
  }
};

}  // namespace internal
}  // namespace rpc

#endif  // VERBENA_RPC_CLIENT_STREAM_CALLBACK_H_
