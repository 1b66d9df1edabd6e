// Interceptors: what sees a call's operations on their way, on either side, and
// may change them; gRPC C++'s experimental interceptor API.
//
//   class Stamp final : public rpc::experimental::Interceptor {
//     void Intercept(
//         rpc::experimental::InterceptorBatchMethods* methods) override {
//       using Hook = rpc::experimental::InterceptionHookPoints;
//       if (methods->QueryInterceptionHookPoint(
//               Hook::PRE_SEND_INITIAL_METADATA)) {
//         methods->GetSendInitialMetadata()->emplace("stamp", "7");
//       }
//       methods->Proceed();
//     }
//   };
//
// Each call has interceptors of its own, made by factories: of a channel
// (client_interceptor.h) or a server (server_interceptor.h). What is sent goes
// from the first to the last, what was received from the last to the first.
//
// Calls of channels and servers without interceptors pay nothing for this.
// Those with them allocate, and take longer.
//
// Thread rule: Intercept runs on the thread that began the operation, or on
// whichever drives the transport, or on the one that the interceptor before it
// called Proceed on. Of one operation one interceptor is asked at a time;
// several operations of a call may be under way at once. Blocking here holds up
// the call, not others.
#ifndef VERBENA_RPC_INTERCEPTOR_H_
#define VERBENA_RPC_INTERCEPTOR_H_

#include <map>
#include <memory>
#include <string>

#include "rpc/byte_buffer.h"
#include "rpc/metadata.h"
#include "rpc/status.h"

namespace rpc {

class ChannelInterface;

namespace experimental {

// Where an operation is intercepted. PRE_SEND: before something goes to the
// other side. POST_SEND: it is on its way. PRE_RECV: of hijacked calls, where
// the interceptor is asked for what would have been received. POST_RECV: it is
// there, and the application has not seen it yet.
enum class InterceptionHookPoints {
  PRE_SEND_INITIAL_METADATA,
  PRE_SEND_MESSAGE,
  POST_SEND_MESSAGE,
  PRE_SEND_STATUS,  // servers
  PRE_SEND_CLOSE,   // clients: half-close, also with a last message
  PRE_RECV_INITIAL_METADATA,
  PRE_RECV_MESSAGE,
  PRE_RECV_STATUS,
  POST_RECV_INITIAL_METADATA,
  POST_RECV_MESSAGE,
  POST_RECV_STATUS,  // clients
  POST_RECV_CLOSE,   // servers: the call is over
  // TryCancel was called. Alone, for every interceptor, and not to be delayed:
  // Proceed does nothing.
  PRE_SEND_CANCEL,
  NUM_INTERCEPTION_HOOKS
};

// One interception: the hook points that an operation has at one time, and what
// belongs to them. Valid until Proceed or Hijack is called. Those that give a
// pointer give null where their hook point is not there.
class InterceptorBatchMethods {
 public:
  virtual ~InterceptorBatchMethods() = default;

  virtual bool QueryInterceptionHookPoint(InterceptionHookPoints type) = 0;

  // The operation goes on: to the next interceptor, to the transport, or to the
  // application. Once for each Intercept, within it or later, on any thread.
  virtual void Proceed() = 0;
  // Instead of Proceed, where PRE_SEND_INITIAL_METADATA is there, on a client:
  // this interceptor answers the call. Neither the interceptors after it nor
  // the transport hear of the call; this one is asked by PRE_RECV hook points
  // for each thing that the application wants to receive.
  virtual void Hijack() = 0;

  // ---- PRE_SEND_MESSAGE

  // The message's bytes, which may be changed. From here on this is the
  // message: GetSendMessage gives null. Null where it cannot be serialized.
  virtual ByteBuffer* GetSerializedSendMessage() = 0;
  // The message, of the type that the application sends. Null where only its
  // bytes are there, as always in the completion queue's API.
  virtual const void* GetSendMessage() = 0;
  // Another message of the same type in its place, needed until
  // POST_SEND_MESSAGE.
  virtual void ModifySendMessage(const void* message) = 0;
  // Of a call that is hijacked, or will be by this: the write fails.
  virtual void FailHijackedSendMessage() = 0;

  // POST_SEND_MESSAGE: whether it was sent.
  virtual bool GetSendMessageStatus() = 0;

  // ---- PRE_SEND_INITIAL_METADATA, PRE_SEND_STATUS

  virtual std::multimap<std::string, std::string>* GetSendInitialMetadata() = 0;
  virtual Status GetSendStatus() = 0;
  virtual void ModifySendStatus(const Status& status) = 0;
  virtual std::multimap<std::string, std::string>*
  GetSendTrailingMetadata() = 0;

  // ---- PRE_RECV, POST_RECV. May all be changed; strings of metadata that are
  // added are needed as long as the call's context.

  // Of the type that the application receives into. POST_RECV_MESSAGE: null
  // where no message came.
  virtual void* GetRecvMessage() = 0;
  virtual std::multimap<string_ref, string_ref>* GetRecvInitialMetadata() = 0;
  virtual Status* GetRecvStatus() = 0;
  virtual std::multimap<string_ref, string_ref>* GetRecvTrailingMetadata() = 0;
  // PRE_RECV_MESSAGE: there is no further message.
  virtual void FailHijackedRecvMessage() = 0;

  // Clients: a channel whose calls see the interceptors after this one only, so
  // that an interceptor can make calls of its own. Null on servers.
  virtual std::unique_ptr<ChannelInterface> GetInterceptedChannel() = 0;
};

class Interceptor {
 public:
  virtual ~Interceptor() = default;

  // Ends in methods->Proceed() or Hijack(), now or later.
  virtual void Intercept(InterceptorBatchMethods* methods) = 0;
};

}  // namespace experimental
}  // namespace rpc

#endif  // VERBENA_RPC_INTERCEPTOR_H_
