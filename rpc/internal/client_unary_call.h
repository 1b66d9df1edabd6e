// A unary call on the client: one message there, one back. Used by generated
// code.
//
// ClientUnaryCall is the sink of the call and knows all of it but whom to tell
// when it is over; its three subclasses tell a waiting thread, a function, or a
// reactor. A warm blocking call of a small message allocates nothing: request
// and call state are on the caller's stack, the response is parsed from the
// receive buffer.
//
// Calls of channels with interceptors go another way (unary_over_stream.h).
//
// The order of things, for a call that goes well:
//
//   Start          encodes, transport->StartCall
//   OnOnlyMessage  decodes into the response, OnDone; on the thread that drives
//                  the transport
//
// or instead of the latter OnFrame, any number of times, and OnClosed.
//
// OnClosed may come before Start returns. Then Start's thread calls OnDone, so
// that nothing touches the call, its context or the user's objects after
// OnDone.
#ifndef VERBENA_RPC_INTERNAL_CLIENT_UNARY_CALL_H_
#define VERBENA_RPC_INTERNAL_CLIENT_UNARY_CALL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "google/protobuf/message_lite.h"
#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/free_list.h"
#include "rpc/internal/message_codec.h"
#include "rpc/internal/message_functions.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc::internal {

class ClientUnaryCall : public CallSink {
 public:
  // Parsing more takes as long as several small calls.
  static constexpr uint64_t kLargeBytes = 16 << 10;

  ClientUnaryCall(const ClientUnaryCall&) = delete;
  ClientUnaryCall& operator=(const ClientUnaryCall&) = delete;

  bool OnStarted(CallHandle handle) final;
  void OnFrame(IncomingFrame& frame) final;
  void OnPeer(std::string_view peer) final;
  void OnClosed(const CallOutcome& outcome) final;
  bool OnOnlyMessage(std::string_view message, Buffer* both) override;

 protected:
  ClientUnaryCall() = default;
  ~ClientUnaryCall() override = default;

  // Ends a call on a channel without a transport. Instead of Start, and with
  // the same meaning of `done_on_other_thread`.
  void StartWithoutTransport(const CallTarget& target, ClientContext* context,
                             bool done_on_other_thread);
  // What a call begins with. `request` is needed until Start returns, `context`
  // and `response` until OnDone.
  struct Beginning {
    const CallTarget* target;        // the channel's
    uint32_t method;                 // its number
    const MethodMessages* messages;  // its functions: static storage
    ClientContext* context;
    ConstMessageRef request;
    MessageRef response;
  };
  // Begins the call. Once per object.
  //
  // `done_on_other_thread`: OnDone never runs on the stack of this function (it
  // may call the user back, and the user may hold locks here). Without it, the
  // caller must call the transport's Wait next (NextWait::kAtOnce), and OnDone
  // is quick.
  // REQUIRES: the target has a transport.
  void Start(const Beginning& beginning, bool done_on_other_thread);

  // Start, in the caller. Where `beginning` is a part of this object, both may
  // be gone once the transport has the call.
  void StartInLine(const Beginning& beginning, bool done_on_other_thread);

  // For OnOnlyMessage of subclasses, in line (unary_answer.h): it, where
  // nothing is beside the message, but for OnInitialMetadata, End and OnDone,
  // which then follow in this order. False: not taken.
  bool TakeOnlyMessage(std::string_view message);
  void End();

  const Status& status() const { return status_; }
  Status TakeStatus() { return std::move(status_); }
  void SetStatus(Status status) { status_ = std::move(status); }
  // For debug_error_string, which has it where the call did not go well.
  void NoteStatusCode(ClientContext& context) const {
    context.status_code_ = static_cast<uint8_t>(status_.error_code());
  }
  // Whether it is protobuf's.
  bool has_protobuf_response() const { return response_.lite() != nullptr; }

 private:
  // The call is over, with status(). The last thing that happens to it; may
  // destroy the call and the context.
  virtual void OnDone() = 0;
  // The same, to be called from Start: hands OnDone to another thread.
  virtual void DoneElsewhere() = 0;
  // Initial metadata came, before OnDone.
  virtual void OnInitialMetadata() {}
  // A response of more than kLargeBytes came. True where it is taken over, to
  // be decoded later; the call ends in order then.
  virtual bool TakeLargeResponse(BufferChain& message) { return false; }

  // False where the call cannot begin: status_ says why.
  bool Begin(const CallTarget& target, ClientContext* context);
  bool EncodeRequest(const CallTarget& target, ConstMessageRef request,
                     MessageScratch& scratch, OutgoingFrame& frame,
                     const MessageFunctions& functions);
  bool EncodeContext(const CallTarget& target, OutgoingFrame& frame);
  bool EncodeAttachment(OutgoingFrame& frame);
  CallHandle StartInParts(const CallOptions& options, OutgoingFrame&& frame,
                          ConstMessageRef request);
  // From then on the call may be over, and this object and the context gone.
  // False: it was cancelled or closed before, and does not count as started.
  bool NoteStarted(CallHandle handle);
  void AfterStart(CallHandle handle, bool done_on_other_thread);
  // AfterStart, where NoteStarted says false.
  void EndStarted(CallHandle handle, bool done_on_other_thread);
  void Done(bool elsewhere);

  ReceivedMetadata& received();
  bool HasInitialMetadata() const;
  bool AcceptHeader(const IncomingFrame& frame, bool first);
  bool AcceptResponse(IncomingFrame& frame);
  bool ParseArriving(ArrivingMessage& message);
  // Ends the call with status_, whatever else comes.
  void Fail();
  void CloseUnusual(const CallOutcome& outcome);

  bool has_started() const;
  bool has(uint8_t what) const { return (came_ & what) != 0; }

  // Bits of came_.
  enum Came : uint8_t {
    kAnyFrame = 1,
    kResponse = 2,  // parsed
    kStatus = 4,    // status_ is final
    kAll = kAnyFrame | kResponse | kStatus,
  };

  // Set when the call begins.
  ClientContext* context_;  // null: it serves another call
  MessageRef response_;
  bool (*parse_)(std::string_view, google::protobuf::MessageLite*);
  size_t max_metadata_bytes_;
  uint8_t came_;
  bool in_parts_;  // Start still writes the request
  Status status_;
};

// Calls a function. From a free list; keeps the channel alive.
class CallbackCall final : public ClientUnaryCall,
                           public FreeListNode,
                           private Executor::Task {
 public:
  static void Run(ChannelInterface* channel, const RpcMethod& method,
                  ClientContext* context, ConstMessageRef request,
                  MessageRef response, std::function<void(Status)> callback);

 private:
  CallbackCall() = default;

  void OnDone() override;
  void DoneElsewhere() override;
  void RunTask() override;
  // Calls the function, when this object is given back and may be used again.
  void CallBack(void (FreeList::*give_back)(FreeListNode*));

  std::shared_ptr<ChannelInterface> channel_;
  std::function<void(Status)> callback_;
};

// The calling thread waits, and drives the transport meanwhile.
Status RunBlockingCall(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, ConstMessageRef request,
                       MessageRef response);
// The same for protobuf's messages: all of it fits into registers.
Status RunBlockingCall(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context,
                       const google::protobuf::MessageLite& request,
                       google::protobuf::MessageLite* response);

// The template arguments after Response are for the shape of gRPC's generated
// code and are not used.
template <class Request, class Response, class BaseRequest = Request,
          class BaseResponse = Response>
Status BlockingUnaryCall(ChannelInterface* channel, const RpcMethod& method,
                         ClientContext* context, const Request& request,
                         Response* response) {
  if constexpr (ProtobufMessage<Request> && ProtobufMessage<Response>) {
    return RunBlockingCall(
        channel, method, context,
        static_cast<const google::protobuf::MessageLite&>(request),
        static_cast<google::protobuf::MessageLite*>(response));
  } else {
    return RunBlockingCall(channel, method, context, ConstMessageRef(request),
                           MessageRef(response));
  }
}

template <class Request, class Response, class BaseRequest = Request,
          class BaseResponse = Response>
void CallbackUnaryCall(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, const Request* request,
                       Response* response,
                       std::function<void(Status)> callback) {
  CallbackCall::Run(channel, method, context, *request, response,
                    std::move(callback));
}

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CLIENT_UNARY_CALL_H_
