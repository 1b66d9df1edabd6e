#include "rpc/internal/client_unary_call.h"

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/message_codec.h"
#include "rpc/metadata.h"

namespace rpc::internal {
namespace {

Status EncodeMetadata(const MetadataMap& metadata, uint32_t max_bytes,
                      std::string& header) {
  HeaderBlockWriter writer(&header);
  for (const auto& [key, value] : metadata) {
    Status status = CheckMetadataEntry(key, value);
    if (!status.ok()) return status;
    writer.Add(HeaderKind::kInitialMetadata, key, value);
  }
  if (header.size() <= max_bytes) return Status();
  return Status(StatusCode::RESOURCE_EXHAUSTED,
                absl::StrCat("metadata of ", header.size(),
                             " bytes does not fit into a frame's header of ",
                             max_bytes, " bytes"));
}

FreeList& CallbackCalls() {
  static auto* const calls = new FreeList();
  return *calls;
}

}  // namespace

void ClientUnaryCall::Start(const CallTarget& target, const RpcMethod& method,
                            ClientContext* context, const Message& request,
                            Message* response, bool done_on_other_thread) {
  context_ = nullptr;
  response_ = response;
  max_metadata_bytes_ = target.max_metadata_bytes;
  has_status_ = has_response_ = any_frame_ = false;
  status_ = Status();

  MessageScratch scratch;
  std::string header;
  OutgoingFrame frame;
  Status status = Begin(target, context);
  if (ABSL_PREDICT_TRUE(status.ok())) {
    status = EncodeRequest(target, request, scratch, header, frame);
  }
  if (ABSL_PREDICT_FALSE(!status.ok())) {
    status_ = std::move(status);
    Done(done_on_other_thread);
    return;
  }
  CallOptions options;
  options.method = method.number();
  options.deadline = context->deadline_;
  options.wait_for_ready = context->wait_for_ready_;
  options.sink_is_quick = !done_on_other_thread;
  AfterStart(target.transport->StartCall(options, std::move(frame), this),
             done_on_other_thread);
}

Status ClientUnaryCall::Begin(const CallTarget& target,
                              ClientContext* context) {
  if (ABSL_PREDICT_FALSE(context->used_)) {
    return Status(
        StatusCode::FAILED_PRECONDITION,
        "this ClientContext has served a call before; each call needs "
        "one of its own");
  }
  context->used_ = true;
  context_ = context;
  if (ABSL_PREDICT_FALSE(target.transport == nullptr)) return target.error;
  context->transport_ = target.transport;
  if (ABSL_PREDICT_FALSE(context->phase_.load(std::memory_order_relaxed) &
                         ClientContext::kCancelled)) {
    return Status(StatusCode::CANCELLED, "Cancelled before the call began");
  }
  return Status();
}

Status ClientUnaryCall::EncodeRequest(const CallTarget& target,
                                      const Message& request,
                                      MessageScratch& scratch,
                                      std::string& header,
                                      OutgoingFrame& frame) {
  const Limits& limits = target.transport->limits();
  if (ABSL_PREDICT_FALSE(context_->sent_ != nullptr)) {
    Status status =
        EncodeMetadata(*context_->sent_, limits.max_header_bytes, header);
    if (!status.ok()) return status;
    frame.header = absl::MakeConstSpan(
        reinterpret_cast<const std::byte*>(header.data()), header.size());
  }
  if (!context_->sent_attachment_.empty()) {
    frame.attachment = std::move(context_->sent_attachment_);
    Status status = CheckAttachmentSize(frame.attachment.size(), limits);
    if (!status.ok()) return status;
  }
  frame.end = true;
  return EncodeMessage(request, *target.transport,
                       EncodeLimits(limits, target.max_send_message_bytes),
                       scratch, frame);
}

// From the exchange on, the call may be over and this object and the context
// gone, unless the exchange says that it is this thread's to end it.
void ClientUnaryCall::AfterStart(CallHandle handle, bool done_on_other_thread) {
  ClientTransport* const transport = context_->transport_;
  context_->handle_ = handle;
  const uint32_t before = context_->phase_.fetch_add(ClientContext::kStarted,
                                                     std::memory_order_acq_rel);
  if (ABSL_PREDICT_TRUE(before == 0)) return;
  if (before & ClientContext::kClosed) {
    Done(done_on_other_thread);
  } else {
    transport->Cancel(handle, absl::CancelledError("Cancelled by TryCancel"));
  }
}

void ClientUnaryCall::Done(bool elsewhere) {
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

void ClientUnaryCall::OnFrame(IncomingFrame& frame) {
  // After an error or the last frame nothing counts any more.
  if (ABSL_PREDICT_FALSE(has_status_)) return;
  Accept(frame);
}

void ClientUnaryCall::Accept(IncomingFrame& frame) {
  if (ABSL_PREDICT_FALSE(!frame.header.empty())) {
    Status status = AcceptHeader(frame);
    if (!status.ok()) return Fail(std::move(status));
  }
  const bool failed = frame.end && frame.status_code != StatusCode::OK;
  if (frame.has_message && !failed) AcceptMessage(frame);
  if (has_status_) return;
  // An error without initial metadata is gRPC's "trailers only".
  if (!any_frame_ && (!failed || context_->received_ != nullptr)) {
    OnInitialMetadata();
  }
  any_frame_ = true;
  if (!frame.end) return;
  if (failed) {
    status_ = ReceivedStatus(frame.status_code, context_->received_.get());
  } else if (!has_response_) {
    status_ = Status(StatusCode::UNIMPLEMENTED,
                     "No message returned for unary request");
  }
  has_status_ = true;
}

Status ClientUnaryCall::AcceptHeader(const IncomingFrame& frame) {
  if (context_->received_ == nullptr) {
    context_->received_ = std::make_unique<ReceivedMetadata>();
  }
  return context_->received_->Add(frame.header,
                                  frame.end ? ReceivedMetadata::From::kServerEnd
                                            : ReceivedMetadata::From::kServer,
                                  max_metadata_bytes_);
}

void ClientUnaryCall::AcceptMessage(IncomingFrame& frame) {
  if (has_response_) {
    return Fail(Status(StatusCode::INTERNAL,
                       "the server sent a second response to a unary call"));
  }
  Status status = DecodeMessage(frame.message, response_);
  if (ABSL_PREDICT_FALSE(!status.ok())) return Fail(std::move(status));
  has_response_ = true;
  if (!frame.attachment.empty()) {
    context_->received_attachment_ = std::move(frame.attachment);
  }
}

void ClientUnaryCall::Fail(Status status) {
  status_ = std::move(status);
  has_status_ = true;
  CancelFromSink();
}

// Where Start has not come so far, it cancels the call.
void ClientUnaryCall::CancelFromSink() {
  const uint32_t before = context_->phase_.fetch_or(ClientContext::kCancelled,
                                                    std::memory_order_acq_rel);
  if (before & ClientContext::kStarted) {
    context_->transport_->Cancel(
        context_->handle_, absl::CancelledError("the response is not usable"));
  }
}

void ClientUnaryCall::OnClosed(const CallOutcome& outcome) {
  context_->may_have_run_ = any_frame_ || outcome.may_have_run;
  if (ABSL_PREDICT_FALSE(!has_status_)) {
    status_ = outcome.status.ok()
                  ? Status(StatusCode::INTERNAL,
                           "the call ended without a status from the server")
                  : Status(outcome.status);
  }
  uint32_t before = context_->phase_.load(std::memory_order_acquire);
  if (ABSL_PREDICT_FALSE((before & ClientContext::kStarted) == 0)) {
    before = context_->phase_.fetch_add(ClientContext::kClosed,
                                        std::memory_order_acq_rel);
  }
  if (before & ClientContext::kStarted) Done(/*elsewhere=*/false);
}

void CallbackCall::Run(ChannelInterface* channel, const RpcMethod& method,
                       ClientContext* context, const Message& request,
                       Message* response,
                       std::function<void(Status)> callback) {
  auto* call = static_cast<CallbackCall*>(CallbackCalls().Take());
  if (call == nullptr) call = new CallbackCall();
  call->channel_ = channel->shared_from_this();
  call->callback_ = std::move(callback);
  call->Start(channel->call_target(), method, context, request, response,
              /*done_on_other_thread=*/true);
}

void CallbackCall::CallBack(void (FreeList::*give_back)(FreeListNode*)) {
  // The channel may go with this call, and the callback may do anything.
  CallbackScope scope(this);
  const std::shared_ptr<ChannelInterface> channel = std::move(channel_);
  const std::function<void(Status)> callback = std::move(callback_);
  Status status = TakeStatus();
  (CallbackCalls().*give_back)(this);
  callback(std::move(status));
}

void CallbackCall::OnDone() { CallBack(&FreeList::Give); }

// The executor's threads start no calls: what they kept would be idle.
void CallbackCall::RunTask() { CallBack(&FreeList::GiveShared); }

void CallbackCall::DoneElsewhere() {
  // Without a thread to be had, a late answer is worse than one on this stack.
  if (!Executor::ForCallbacks().Post(this)) OnDone();
}

}  // namespace rpc::internal
