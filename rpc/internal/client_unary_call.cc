#include "rpc/internal/client_unary_call.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "rpc/internal/any_message_codec.h"
#include "rpc/internal/call_errors.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/channel_hold.h"
#include "rpc/internal/message_in_parts.h"
#include "rpc/internal/thrown.h"
#include "rpc/internal/unary_answer.h"
#include "rpc/internal/unary_over_stream.h"

namespace rpc::internal {
namespace {

FreeList& CallbackCalls() {
  static auto* const calls = new FreeList();
  return *calls;
}

// EncodeAnyMessage's allocator.
struct RequestMemory {
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) {
    return transport.AllocateBuffer(bytes);
  }
  std::shared_ptr<GrowingMessage> Grow(size_t bytes) {
    return transport.GrowMessage(bytes);
  }

  ClientTransport& transport;
};

}  // namespace

void ClientUnaryCall::StartWithoutTransport(const CallTarget& target,
                                            ClientContext* context,
                                            bool done_on_other_thread) {
  context_ = nullptr;
  if (std::exchange(context->used_, true)) {
    status_ = ContextServedBefore();
  } else {
    context_ = context;
    status_ = target.error;
  }
  Done(done_on_other_thread);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void ClientUnaryCall::StartInLine(
    const Beginning& beginning, bool done_on_other_thread) {
  const CallTarget& target = *beginning.target;
  const MethodMessages& messages = *beginning.messages;
  ClientContext* const context = beginning.context;
  response_ = beginning.response;
  parse_ = messages.response.parse;
  max_metadata_bytes_ = target.max_metadata_bytes;
  came_ = 0;
  in_parts_ = false;
  if (ABSL_PREDICT_FALSE(!status_.ok())) status_ = Status();

  MessageScratch scratch;
  OutgoingFrame frame;
  if (ABSL_PREDICT_FALSE(!Begin(target, context) ||
                         !EncodeRequest(target, beginning.request, scratch,
                                        frame, messages.request))) {
    return Done(done_on_other_thread);
  }
  CallOptions options;
  options.method = beginning.method;
  options.deadline = context->deadline_;
  options.wait_for_ready = context->wait_for_ready_;
  options.next_wait =
      done_on_other_thread ? NextWait::kUnknown : NextWait::kAtOnce;
  options.quick = !done_on_other_thread;
  const CallHandle handle =
      ABSL_PREDICT_FALSE(frame.growing != nullptr)
          ? StartInParts(options, std::move(frame), beginning.request)
          : target.transport->StartCall(options, std::move(frame), this);
  // Else it may be over, and this object gone.
  if (handle) AfterStart(handle, done_on_other_thread);
}

void ClientUnaryCall::Start(const Beginning& beginning,
                            bool done_on_other_thread) {
  StartInLine(beginning, done_on_other_thread);
}

inline bool ClientUnaryCall::Begin(const CallTarget& target,
                                   ClientContext* context) {
  if (ABSL_PREDICT_FALSE(context->used_)) {
    context_ = nullptr;
    status_ = ContextServedBefore();
    return false;
  }
  context->used_ = true;
  context_ = context;
  context->transport_ = target.transport;
  if (ABSL_PREDICT_FALSE(context->phase_.load(std::memory_order_relaxed) &
                         ClientContext::kCancelled)) {
    status_ = CancelledBefore();
    return false;
  }
  return true;
}

inline bool ClientUnaryCall::EncodeRequest(const CallTarget& target,
                                           ConstMessageRef request,
                                           MessageScratch& scratch,
                                           OutgoingFrame& frame,
                                           const MessageFunctions& functions) {
  if (ABSL_PREDICT_FALSE(context_->sent_ != nullptr) &&
      !EncodeContext(target, frame)) {
    return false;
  }
  if (ABSL_PREDICT_FALSE(!context_->sent_attachment_.empty()) &&
      !EncodeAttachment(frame)) {
    return false;
  }
  frame.end = true;
  RequestMemory memory = {*target.transport};
  return EncodeAnyMessage(request, memory, target.encode_limits, scratch, frame,
                          &status_, functions);
}

// Other threads drive meanwhile, and may end the call; not so this object.
ABSL_ATTRIBUTE_NOINLINE CallHandle
ClientUnaryCall::StartInParts(const CallOptions& options, OutgoingFrame&& frame,
                              ConstMessageRef request) {
  in_parts_ = true;
  MessageInParts rest(frame);
  CallOptions left_to_others = options;
  left_to_others.next_wait = NextWait::kUnknown;
  const CallHandle handle =
      context_->transport_->StartCall(left_to_others, std::move(frame), this);
  rest.Write(*request.lite(), options.next_wait);
  return handle;
}

bool ClientUnaryCall::EncodeContext(const CallTarget& target,
                                    OutgoingFrame& frame) {
  status_ = context_->EncodeSent(target, &frame.header);
  return status_.ok();
}

bool ClientUnaryCall::EncodeAttachment(OutgoingFrame& frame) {
  frame.attachment = std::move(context_->sent_attachment_);
  return CheckAttachmentSize(frame.attachment.size(),
                             context_->transport_->limits(), &status_);
}

// What AfterStart does, where it waits for no store of the frame's. A call that
// was cancelled meanwhile is left to that.
bool ClientUnaryCall::OnStarted(CallHandle handle) {
  return !in_parts_ && NoteStarted(handle);
}

inline bool ClientUnaryCall::NoteStarted(CallHandle handle) {
  context_->handle_ = handle;
  uint32_t none = 0;
  return context_->phase_.compare_exchange_strong(none, ClientContext::kStarted,
                                                  std::memory_order_acq_rel);
}

inline void ClientUnaryCall::AfterStart(CallHandle handle,
                                        bool done_on_other_thread) {
  if (ABSL_PREDICT_FALSE(!NoteStarted(handle))) {
    EndStarted(handle, done_on_other_thread);
  }
}

// Cancelled first: once the call counts as started it may be over, and the
// channel gone with it, unless it is this thread's to end it.
ABSL_ATTRIBUTE_NOINLINE void ClientUnaryCall::EndStarted(
    CallHandle handle, bool done_on_other_thread) {
  if ((context_->phase_.load(std::memory_order_acquire) &
       ClientContext::kClosed) == 0) {
    context_->transport_->Cancel(handle, absl::CancelledError("CANCELLED"));
  }
  const uint32_t before = context_->phase_.fetch_add(ClientContext::kStarted,
                                                     std::memory_order_acq_rel);
  if (before & ClientContext::kClosed) Done(done_on_other_thread);
}

ABSL_ATTRIBUTE_NOINLINE void ClientUnaryCall::Done(bool elsewhere) {
  if (context_ != nullptr) {
    context_->phase_.store(ClientContext::kStarted | ClientContext::kOver,
                           std::memory_order_relaxed);
  }
  if (ABSL_PREDICT_FALSE(elsewhere)) {
    DoneElsewhere();
  } else {
    OnDone();
  }
}

ABSL_ATTRIBUTE_NOINLINE bool ClientUnaryCall::OnOnlyMessage(
    std::string_view message, Buffer* both) {
  if (!TakeOnlyMessage(message)) return false;
  if (both != nullptr) {
    both->remove_prefix(message.size());
    context_->received_attachment_ = BufferChain(std::move(*both));
  }
  OnInitialMetadata();
  End();
  OnDone();
  return true;
}

void ClientUnaryCall::OnFrame(IncomingFrame& frame) {
  // After an error or the last frame nothing counts any more.
  if (has(kStatus)) return;
  const bool first = !has(kAnyFrame);
  came_ |= kAnyFrame;
  if (!frame.header.empty() && !AcceptHeader(frame, first)) return;
  const bool failed = frame.end && frame.status_code != StatusCode::OK;
  if (frame.has_message && !failed && !AcceptResponse(frame)) return;
  // An error without initial metadata is gRPC's "trailers only".
  if (first && (!failed || HasInitialMetadata())) {
    OnInitialMetadata();
  }
  if (!frame.end) return;
  if (failed) {
    status_ = ReceivedStatus(frame.status_code, context_->received_.get());
    NoteStatusCode(*context_);
  } else if (!has(kResponse)) {
    status_ = NoResponse();
  }
  came_ |= kStatus;
}

void ClientUnaryCall::OnPeer(std::string_view peer) {
  received().set_peer(peer);
}

ReceivedMetadata& ClientUnaryCall::received() {
  if (context_->received_ == nullptr) {
    context_->received_ = std::make_unique<ReceivedMetadata>();
  }
  return *context_->received_;
}

bool ClientUnaryCall::HasInitialMetadata() const {
  return context_->received_ != nullptr &&
         !context_->received_->initial().empty();
}

bool ClientUnaryCall::AcceptHeader(const IncomingFrame& frame, bool first) {
  status_ = received().Add(frame.header,
                           frame.end ? ReceivedMetadata::From::kServerEnd
                                     : ReceivedMetadata::From::kServer,
                           first, max_metadata_bytes_);
  if (!status_.ok()) Fail();
  return status_.ok();
}

bool ClientUnaryCall::AcceptResponse(IncomingFrame& frame) {
  if (has(kResponse)) {
    status_ = Status(StatusCode::UNIMPLEMENTED,
                     "the server sent a second response to a unary call");
    Fail();
    return false;
  }
  if (frame.arriving != nullptr) {
    if (!ParseArriving(*frame.arriving)) return false;
  } else {
    const bool taken =
        frame.message.size() > kLargeBytes && TakeLargeResponse(frame.message);
    if (!taken && !DecodeAnyMessage(frame.message, response_, &status_)) {
      Fail();
      return false;
    }
  }
  came_ |= kResponse;
  if (!frame.attachment.empty()) {
    context_->received_attachment_ = std::move(frame.attachment);
  }
  return true;
}

// Nothing may be thrown through the transport.
bool ClientUnaryCall::ParseArriving(ArrivingMessage& message) {
  Status error;
  Arrival arrival = Arrival::kMalformed;
  try {
    arrival = DecodeArriving(message, response_.lite(), &error);
  } catch (...) {
    LogThrown("parsing a response", std::current_exception());
    error = Status(StatusCode::INTERNAL, "parsing the response threw");
  }
  // OnClosed tells why one was cut off.
  if (arrival == Arrival::kMalformed) {
    status_ = std::move(error);
    Fail();
  }
  return arrival == Arrival::kParsed;
}

// Where Start has not come so far, it cancels the call.
void ClientUnaryCall::Fail() {
  came_ |= kStatus;
  const uint32_t before = context_->phase_.fetch_or(
      ClientContext::kCancelled | ClientContext::kFailed,
      std::memory_order_acq_rel);
  if (before & ClientContext::kStarted) {
    context_->transport_->Cancel(
        context_->handle_, absl::CancelledError("the response is not usable"));
  }
}

void ClientUnaryCall::OnClosed(const CallOutcome& outcome) {
  if (ABSL_PREDICT_FALSE(came_ != kAll || !has_started())) {
    return CloseUnusual(outcome);
  }
  End();
  OnDone();
}

// Not all has come, or Start has not come so far.
ABSL_ATTRIBUTE_NOINLINE void ClientUnaryCall::CloseUnusual(
    const CallOutcome& outcome) {
  context_->may_have_run_ = has(kAnyFrame) || outcome.may_have_run;
  if (!has(kStatus)) {
    status_ = outcome.status.ok() ? NoStatus() : Status(outcome.status);
  }
  NoteStatusCode(*context_);
  uint32_t before = context_->phase_.load(std::memory_order_acquire);
  if ((before & ClientContext::kStarted) == 0) {
    // TryCancel found no handle yet, and what came since is no answer any more.
    if ((before & ClientContext::kCancelled) &&
        (before & ClientContext::kFailed) == 0) {
      status_ = Cancelled();
      NoteStatusCode(*context_);
    }
    before = context_->phase_.fetch_add(ClientContext::kClosed,
                                        std::memory_order_acq_rel);
  }
  if (before & ClientContext::kStarted) Done(/*elsewhere=*/false);
}

namespace {

// A large response is parsed by the waiting thread, not by the one that drives,
// which other calls need; where it is the same, while the response arrives.
class BlockingCall final : public ClientUnaryCall {
 public:
  ABSL_ATTRIBUTE_ALWAYS_INLINE Status Run(ChannelInterface* channel,
                                          const RpcMethod& method,
                                          ClientContext* context,
                                          ConstMessageRef request,
                                          MessageRef response) {
    const CallTarget& target = method.target();
    if (ABSL_PREDICT_FALSE(target.transport == nullptr)) {
      return RunWithoutTransport(channel, method, context, request, response);
    }
    StartInLine({&target, method.number(), &method.messages(), context, request,
                 response},
                /*done_on_other_thread=*/false);
    target.transport->Wait(done_);
    if (ABSL_PREDICT_FALSE(!large_response_.empty()))
      DecodeLarge(context, response);
    return TakeStatus();
  }

 private:
  Status RunWithoutTransport(ChannelInterface* channel, const RpcMethod& method,
                             ClientContext* context, ConstMessageRef request,
                             MessageRef response);
  bool TakeLargeResponse(BufferChain& message) override {
    large_response_ = std::move(message);
    return true;
  }
  // Where this thread drives, and waits for nothing else meanwhile: it drives
  // on while it parses, but for callbacks.
  bool ParsesWhatArrives() const override {
    return OnItsThread() && CallbackScope::innermost() == scope_ &&
           has_protobuf_response();
  }
  bool OnOnlyMessage(std::string_view message, Buffer* both) override {
    if (ABSL_PREDICT_FALSE(both != nullptr))
      return ClientUnaryCall::OnOnlyMessage(message, both);
    if (!TakeOnlyMessage(message)) return false;
    End();
    OnDone();
    return true;
  }
  void DecodeLarge(ClientContext* context, MessageRef response);
  bool OnItsThread() const { return CallbackScope::ThisThread() == thread_; }
  void OnDone() override {
    if (OnItsThread()) {
      done_.SetByWaiter();
    } else {
      done_.Set();
    }
  }
  void DoneElsewhere() override { done_.Set(); }

  // The one that waits, and the callback in which it does.
  const void* const thread_ = CallbackScope::ThisThread();
  const CallbackScope* const scope_ = CallbackScope::innermost();
  Event done_;
  BufferChain large_response_;
};

ABSL_ATTRIBUTE_NOINLINE Status BlockingCall::RunWithoutTransport(
    ChannelInterface* channel, const RpcMethod& method, ClientContext* context,
    ConstMessageRef request, MessageRef response) {
  const CallTarget& target = method.target();
  if (target.interceptors != nullptr) {
    return UnaryOverStream(channel, method, context, request, response);
  }
  StartWithoutTransport(target, context, /*done_on_other_thread=*/false);
  return TakeStatus();
}

ABSL_ATTRIBUTE_NOINLINE void BlockingCall::DecodeLarge(ClientContext* context,
                                                       MessageRef response) {
  // A call that did not end well after all has no response.
  if (!status().ok()) return;
  Status error;
  if (!DecodeAnyMessage(large_response_, response, &error)) {
    SetStatus(std::move(error));
    NoteStatusCode(*context);
  }
}

}  // namespace

Status RunBlockingCall(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, ConstMessageRef request,
                       MessageRef response) {
  BlockingCall call;  // BlockingCall() would be cleared first
  return call.Run(channel, method, context, request, response);
}

Status RunBlockingCall(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context,
                       const google::protobuf::MessageLite& request,
                       google::protobuf::MessageLite* response) {
  BlockingCall call;  // BlockingCall() would be cleared first
  return call.Run(channel, method, context, request, response);
}

// What it throws is left behind, and the process goes on, as in gRPC.
static void CallUsers(const std::function<void(Status)>& callback,
                      Status status) {
  try {
    callback(std::move(status));
  } catch (...) {
    LogThrown("a call's callback", std::current_exception());
  }
}

void CallbackCall::Run(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, ConstMessageRef request,
                       MessageRef response,
                       std::function<void(Status)> callback) {
  const CallTarget& target = method.target();
  if (ABSL_PREDICT_FALSE(target.transport == nullptr &&
                         target.interceptors != nullptr)) {
    auto* const reactor = new UnaryStreamReactor(
        channel, method, context, request, response, /*on_metadata=*/nullptr,
        [callback = std::move(callback)](const Status& status) {
          CallUsers(callback, status);
        });
    return reactor->StartCall();
  }
  auto* call = static_cast<CallbackCall*>(CallbackCalls().Take());
  if (call == nullptr) call = new CallbackCall();
  call->channel_ = HoldChannel(channel);
  call->callback_ = std::move(callback);
  if (ABSL_PREDICT_FALSE(target.transport == nullptr)) {
    return call->StartWithoutTransport(target, context,
                                       /*done_on_other_thread=*/true);
  }
  call->StartInLine({&target, method.number(), &method.messages(), context,
                     request, response},
                    /*done_on_other_thread=*/true);
}

void CallbackCall::CallBack(void (FreeList::*give_back)(FreeListNode*)) {
  // The channel may go with this call, and the callback may do anything.
  CallbackScope scope(this);
  const ChannelRelease release(std::move(channel_));
  const std::function<void(Status)> callback = std::move(callback_);
  Status status = TakeStatus();
  (CallbackCalls().*give_back)(this);
  CallUsers(callback, std::move(status));
}

void CallbackCall::OnDone() { CallBack(&FreeList::Give); }

// The executor's threads start no calls: what they kept would be idle.
void CallbackCall::RunTask() { CallBack(&FreeList::GiveShared); }

void CallbackCall::DoneElsewhere() {
  // Without a thread to be had, a late answer is worse than one on this stack.
  if (!Executor::ForCallbacks().Post(this)) OnDone();
}

}  // namespace rpc::internal
