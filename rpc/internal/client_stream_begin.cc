// How a client's stream begins.
#include <memory>
#include <utility>

#include "rpc/internal/any_message_codec.h"
#include "rpc/internal/call_errors.h"
#include "rpc/internal/client_stream.h"
#include "rpc/internal/received_metadata.h"

namespace rpc::internal {

std::shared_ptr<ClientStream> ClientStream::Create(ChannelInterface* channel,
                                                   const RpcMethod& method,
                                                   ClientContext* context,
                                                   Completions completions) {
  return std::shared_ptr<ClientStream>(
      new ClientStream(channel, method, context, completions));
}

std::shared_ptr<ClientStream> ClientStream::Start(ChannelInterface* channel,
                                                  const RpcMethod& method,
                                                  ClientContext* context,
                                                  ConstMessageRef request) {
  std::shared_ptr<ClientStream> stream =
      Create(channel, method, context, Completions::kQuick);
  if (stream->interception_ == nullptr) {
    stream->StartNow(request);
  } else {
    BlockingOperation started;
    stream->StartCall(request, &started);
    stream->Wait(started);
  }
  return stream;
}

void ClientStream::StartCall(ConstMessageRef request,
                             StreamOperation* started) {
  if (interception_ != nullptr) {
    return interception_->Start(shared_from_this(), InterceptedMessage(request),
                                started);
  }
  StartNow(request);
  if (started != nullptr) started->Complete(MayRun());
}

void ClientStream::StartAtOnce(ConstMessageRef request) {
  if (interception_ == nullptr) return StartNow(request);
  InterceptedMessage message(request);
  message.Serialize();
  interception_->Start(shared_from_this(), std::move(message), nullptr);
}

void ClientStream::StartNow(ConstMessageRef request) {
  Opening opening;
  if (Open(request, opening)) Launch(opening.frame);
}

void ClientStream::Prepare(ConstMessageRef request) {
  if (interception_ != nullptr) return interception_->Prepare(request);
  prepared_ = std::make_unique<Opening>();
  if (!Open(request, *prepared_)) prepared_.reset();
}

// Once `started` is completed, the user's object may go.
void ClientStream::StartPrepared(StreamOperation* started) {
  const std::shared_ptr<ClientStream> self = shared_from_this();
  if (interception_ != nullptr) {
    return interception_->StartPrepared(self, started);
  }
  const std::unique_ptr<Opening> opening = std::move(prepared_);
  // Nothing tells when a direction's last frame left.
  const bool waits =
      started != nullptr && opening != nullptr && !opening->frame.end;
  if (waits) {
    absl::MutexLock lock(&mutex_);
    waiting_.start = started;
  }
  if (opening != nullptr) Launch(opening->frame);
  if (started != nullptr && !waits) started->Complete(MayRun());
}

// Its interceptor answers it; nothing will come from the transport.
void ClientStream::BeginHijacked() {
  NeverBegan(Status());
  absl::MutexLock lock(&mutex_);
  if (context_ != nullptr) context_->used_ = true;
}

bool ClientStream::Open(ConstMessageRef request, Opening& opening) {
  Status error;
  if (Begin(&error) && EncodeRequest(request, opening, &error)) return true;
  NeverBegan(std::move(error));
  return false;
}

bool ClientStream::EncodeRequest(ConstMessageRef request, Opening& opening,
                                 Status* error) {
  opening.frame.end = request.has_message();
  return !opening.frame.end ||
         EncodeAnyMessage(request, *transport_, target_.encode_limits,
                          opening.scratch, opening.frame, error);
}

bool ClientStream::AddContext(ClientContext& context, OutgoingFrame& frame,
                              Status* error) {
  if (context.phase_.load() & ClientContext::kCancelled) {
    *error = CancelledBefore();
    return false;
  }
  if (context.sent_ != nullptr) {
    *error = context.EncodeSent(target_, &frame.header);
    if (!error->ok()) return false;
  }
  if (context.sent_attachment_.empty()) return true;
  frame.attachment = std::move(context.sent_attachment_);
  return CheckAttachmentSize(frame.attachment.size(), transport_->limits(),
                             error);
}

bool ClientStream::Begin(Status* error) {
  absl::MutexLock lock(&mutex_);
  if (context_ == nullptr) {  // an interceptor came too late
    *error = Status(StatusCode::CANCELLED, kAbandoned);
    return false;
  }
  if (std::exchange(context_->used_, true)) {
    *error = ContextServedBefore();
    context_ = nullptr;
    return false;
  }
  if (transport_ == nullptr) {
    *error = target_.error;
    return false;
  }
  context_->transport_ = transport_;
  // Now, as it may be looked at while the stream runs.
  if (context_->received_ == nullptr) {
    context_->received_ = std::make_unique<ReceivedMetadata>();
  }
  return true;
}

void ClientStream::Launch(OutgoingFrame& frame) {
  ClientContext* context;
  {
    absl::MutexLock lock(&mutex_);
    context = context_;
  }
  if (context == nullptr) {  // since Begin, by another thread
    return NeverBegan(Status(StatusCode::CANCELLED, kAbandoned));
  }
  Status error;
  if (!AddContext(*context, frame, &error)) return NeverBegan(std::move(error));
  {
    absl::MutexLock lock(&mutex_);
    self_ = shared_from_this();
    opening_ = !frame.end;
    writes_ended_ = frame.end;
    launching_ = true;
  }
  CallOptions options;
  options.method = method_;
  options.deadline = context->deadline_;
  options.wait_for_ready = context->wait_for_ready_;
  options.quick =
      completions_ == Completions::kQuick && interception_ == nullptr;
  if (for_guests_) options.next_wait = NextWait::kAsGuest;
  const CallHandle handle =
      transport_->StartCall(options, std::move(frame), this);
  context->handle_ = handle;
  const uint32_t before = context->phase_.fetch_or(ClientContext::kStarted,
                                                   std::memory_order_acq_rel);
  absl::Status cancel;
  bool opened;
  bool closed;
  bool may_have_run;
  Waiting waiting;  // what OnClosed left
  {
    absl::MutexLock lock(&mutex_);
    handle_ = handle;
    launching_ = false;
    opened = opened_early_;
    closed = closed_;
    may_have_run = may_have_run_;
    if (closed) waiting = TakeWaiting();
    cancel = std::move(cancel_when_started_);
  }
  if (before & ClientContext::kCancelled) {
    cancel = absl::CancelledError("CANCELLED");
  }
  if (!cancel.ok()) transport_->Cancel(handle, std::move(cancel));
  // Whoever hears of it may use the handle, and let the stream go.
  if (closed) return EndOperations(waiting, may_have_run);
  if (opened) Opened();
}

void ClientStream::NeverBegan(Status status) {
  Waiting waiting;
  {
    absl::MutexLock lock(&mutex_);
    status_ = std::move(status);
    has_status_ = closed_ = true;
    waiting = TakeWaiting();
  }
  EndOperations(waiting, /*may_have_run=*/false);
}

ClientStream::Waiting ClientStream::TakeWaiting() {
  return std::exchange(waiting_, Waiting());
}

void ClientStream::EndOperations(const Waiting& waiting, bool may_have_run) {
  inbox_.End();
  if (waiting.start != nullptr) waiting.start->Complete(may_have_run);
  if (waiting.last != nullptr) waiting.last->Complete(may_have_run);
  if (waiting.write != nullptr) waiting.write->Complete(false);
  if (waiting.metadata != nullptr) waiting.metadata->Complete(false);
  if (waiting.finish != nullptr) waiting.finish->Complete(true);
}

}  // namespace rpc::internal
