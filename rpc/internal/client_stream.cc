#include "rpc/internal/client_stream.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "rpc/internal/any_message_codec.h"
#include "rpc/internal/call_errors.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/channel_interceptors.h"
#include "rpc/internal/received_metadata.h"

namespace rpc::internal {
namespace {

constexpr char kAbandoned[] = "the stream's object was destroyed";

ClientTransport* TransportOf(const CallTarget& target) {
  return target.interceptors == nullptr ? target.transport
                                        : target.interceptors->transport;
}

}  // namespace

ClientStream::ClientStream(ChannelInterface* channel, const RpcMethod& method,
                           ClientContext* context, Completions completions)
    : channel_(channel->shared_from_this()),
      target_(channel_->call_target()),
      transport_(TransportOf(target_)),
      method_(method.number()),
      completions_(completions),
      interception_(ClientInterception::Create(target_, method, context)),
      context_(context) {
  if (transport_ != nullptr) {
    inbox_.Reset(transport_->limits().stream_window_bytes);
  }
}

// ---- Beginning.

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
  Status error;
  if (!AddContext(*context, frame, &error)) return NeverBegan(std::move(error));
  {
    absl::MutexLock lock(&mutex_);
    self_ = shared_from_this();
    opening_ = !frame.end;
    writes_ended_ = frame.end;
  }
  CallOptions options;
  options.method = method_;
  options.deadline = context->deadline_;
  options.wait_for_ready = context->wait_for_ready_;
  const CallHandle handle =
      transport_->StartCall(options, std::move(frame), this);
  context->handle_ = handle;
  const uint32_t before = context->phase_.fetch_or(ClientContext::kStarted,
                                                   std::memory_order_acq_rel);
  absl::Status cancel;
  {
    absl::MutexLock lock(&mutex_);
    handle_ = handle;
    cancel = std::move(cancel_when_started_);
  }
  if (before & ClientContext::kCancelled) {
    cancel = absl::CancelledError("CANCELLED");
  }
  if (!cancel.ok()) transport_->Cancel(handle, std::move(cancel));
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

// ---- What comes.

void ClientStream::OnFrame(IncomingFrame& frame) {
  CallbackScope scope(this);
  StreamOperation* metadata = nullptr;
  bool any_metadata = false;
  bool usable = true;
  bool failed = false;
  {
    absl::MutexLock lock(&mutex_);
    if (has_status_) return;
    usable = frame.header.empty() || AcceptHeader(frame);
    failed = frame.end && frame.status_code != StatusCode::OK;
    if (usable && frame.end) {
      status_ = failed ? ReceivedStatus(frame.status_code,
                                        context_ == nullptr
                                            ? nullptr
                                            : context_->received_.get())
                       : Status();
      has_status_ = true;
    }
    // An error without any, and before any, is gRPC's "trailers only".
    initial_metadata_ =
        initial_metadata_ || (usable && (!failed || HasInitialMetadata()));
    any_metadata = initial_metadata_;
    any_frame_ = true;
    metadata = std::exchange(waiting_.metadata, nullptr);
  }
  // Before the message that they came with, as in gRPC.
  if (metadata != nullptr) metadata->Complete(any_metadata);
  const bool is_message = usable && frame.has_message && !failed;
  Release(is_message ? inbox_.Add(frame) : frame.window_bytes,
          /*drained=*/false);
  if (!usable || frame.end) inbox_.End();
  if (!usable) Cancel(absl::CancelledError("the response is not usable"));
}

bool ClientStream::AcceptHeader(const IncomingFrame& frame) {
  if (context_ == nullptr) return true;
  Status status = context_->received_->Add(
      frame.header,
      frame.end ? ReceivedMetadata::From::kServerEnd
                : ReceivedMetadata::From::kServer,
      /*first=*/!any_frame_, target_.max_metadata_bytes);
  if (status.ok()) return true;
  status_ = std::move(status);
  has_status_ = true;
  return false;
}

bool ClientStream::HasInitialMetadata() const {
  return context_ != nullptr && !context_->received_->initial().empty();
}

void ClientStream::OnSent() {
  CallbackScope scope(this);
  StreamOperation* write = nullptr;
  bool opened;
  {
    absl::MutexLock lock(&mutex_);
    opened = std::exchange(opening_, false);
    if (!opened) {
      write = std::exchange(waiting_.write, nullptr);
      sent_ = write == nullptr;
    }
  }
  if (opened) return Opened();
  if (write != nullptr) write->Complete(true);
}

// The frame that opened the call left.
void ClientStream::Opened() {
  StreamOperation* start;
  StreamOperation* last;
  {
    absl::MutexLock lock(&mutex_);
    start = std::exchange(waiting_.start, nullptr);
    last = std::exchange(waiting_.last, nullptr);
  }
  if (start != nullptr) start->Complete(true);
  if (last != nullptr) last->Complete(true);
}

void ClientStream::OnClosed(const CallOutcome& outcome) {
  CallbackScope scope(this);
  // Released at the end, and not under the lock; the channel may go with it.
  std::shared_ptr<ClientStream> self;
  Waiting waiting;
  bool may_have_run;
  {
    absl::MutexLock lock(&mutex_);
    self = std::move(self_);
    if (!has_status_) {
      status_ = outcome.status.ok() ? NoStatus() : Status(outcome.status);
      has_status_ = true;
    }
    closed_ = true;
    may_have_run_ = may_have_run = any_frame_ || outcome.may_have_run;
    if (context_ != nullptr) {
      context_->may_have_run_ = may_have_run_;
      context_->status_code_ = static_cast<uint8_t>(status_.error_code());
      context_->phase_.fetch_or(ClientContext::kOver);
    }
    waiting = TakeWaiting();
  }
  EndOperations(waiting, may_have_run);
}

// ---- Operations.

void ClientStream::Read(StreamMessage* received, MessageRef message,
                        BufferChain* attachment, StreamOperation* operation) {
  if (interception_ == nullptr) return ReadNow(received, operation);
  interception_->Read(shared_from_this(), received, message, attachment,
                      operation);
}

void ClientStream::ReadNow(StreamMessage* message, StreamOperation* operation) {
  inbox_.Take(message, operation);
}

// With interceptors, it was decoded for them.
bool ClientStream::Decode(StreamMessage& received, MessageRef message,
                          BufferChain* attachment) {
  return interception_ != nullptr || DecodeNow(received, message, attachment);
}

bool ClientStream::DecodeNow(StreamMessage& received, MessageRef message,
                             BufferChain* attachment) {
  Status error;
  const bool decoded = DecodeAnyMessage(received.message, message, &error);
  if (attachment != nullptr) *attachment = std::move(received.attachment);
  received.message.clear();
  Taken(received);
  if (!decoded) Fail(std::move(error));
  return decoded;
}

void ClientStream::Taken(const StreamMessage& message) {
  bool drained = false;
  const uint64_t window_bytes = inbox_.NoteTaken(message, &drained);
  Release(window_bytes, drained);
}

void ClientStream::Release(uint64_t window_bytes, bool drained) {
  if (window_bytes == 0) return;
  CallHandle handle;
  {
    absl::MutexLock lock(&mutex_);
    handle = handle_;
    if (closed_) return;
  }
  transport_->Release(handle, window_bytes, drained);
}

void ClientStream::Write(ConstMessageRef message, WriteOptions options,
                         StreamOperation* operation) {
  if (interception_ == nullptr) {
    return WriteNow(message, std::move(options), operation);
  }
  interception_->Write(shared_from_this(), message, std::move(options),
                       operation);
}

void ClientStream::WriteNow(ConstMessageRef message, WriteOptions options,
                            StreamOperation* operation) {
  MessageScratch scratch;
  OutgoingFrame frame;
  Status error;
  bool ready = transport_ != nullptr;
  if (ready && !options.attachment().empty()) {
    frame.attachment = std::move(options.attachment());
    ready = CheckAttachmentSize(frame.attachment.size(), transport_->limits(),
                                &error);
  }
  ready = ready && EncodeAnyMessage(message, *transport_, target_.encode_limits,
                                    scratch, frame, &error);
  if (!ready) {
    if (!error.ok()) Fail(std::move(error));
    return operation->Complete(false);
  }
  frame.end = options.is_last_message();
  Send(frame, operation);
}

void ClientStream::WritesDone(StreamOperation* operation) {
  if (interception_ == nullptr) return WritesDoneNow(operation);
  interception_->WritesDone(shared_from_this(), operation);
}

void ClientStream::WritesDoneNow(StreamOperation* operation) {
  OutgoingFrame frame;
  frame.end = true;
  Send(frame, operation);
}

void ClientStream::Send(OutgoingFrame& frame, StreamOperation* operation) {
  const bool last = frame.end;
  CallHandle handle;
  {
    absl::MutexLock lock(&mutex_);
    if (!has_status_ && !writes_ended_) {
      writes_ended_ = last;
      handle = handle_;
    }
  }
  if (!handle) return operation->Complete(false);
  frame.sent_by_result = true;
  bool sent = transport_->Send(handle, std::move(frame));
  // Of the last one no OnSent tells, but it is not sent before the opening.
  if (!sent && last) {
    absl::MutexLock lock(&mutex_);
    if (opening_ && !closed_) {
      waiting_.last = operation;
      return;
    }
    sent = !closed_ || may_have_run_;
  }
  if (!sent && !last) {
    absl::MutexLock lock(&mutex_);
    sent = std::exchange(sent_, false);
    if (!sent && !closed_) {
      waiting_.write = operation;
      return;
    }
  }
  operation->Complete(sent);
}

void ClientStream::WaitForInitialMetadata(StreamOperation* operation) {
  if (interception_ == nullptr) return WaitForInitialMetadataNow(operation);
  interception_->WaitForInitialMetadata(shared_from_this(), operation);
}

void ClientStream::WaitForInitialMetadataNow(StreamOperation* operation) {
  bool came;
  {
    absl::MutexLock lock(&mutex_);
    came = initial_metadata_;
    if (!came && !has_status_) {
      waiting_.metadata = operation;
      return;
    }
  }
  operation->Complete(came);
}

void ClientStream::Finish(bool discard, MessageRef response,
                          StreamOperation* operation) {
  if (interception_ == nullptr) return FinishNow(discard, operation);
  interception_->Finish(shared_from_this(), discard, response, operation);
}

void ClientStream::WaitForEnd(StreamOperation* operation) {
  FinishNow(/*discard=*/false, operation);
}

void ClientStream::FinishNow(bool discard, StreamOperation* operation) {
  if (discard) Release(inbox_.Discard(), /*drained=*/true);
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) {
      waiting_.finish = operation;
      return;
    }
  }
  operation->Complete(true);
}

bool ClientStream::MayRun() {
  absl::MutexLock lock(&mutex_);
  return !closed_ || may_have_run_;
}

Status ClientStream::TakeStatus(MessageRef response) {
  return interception_ == nullptr ? TakeStatusNow(response)
                                  : interception_->TakeStatus();
}

Status ClientStream::TakeStatusAlone() {
  absl::MutexLock lock(&mutex_);
  return std::move(status_);
}

// Nothing waits here: no further message comes.
Status ClientStream::TakeStatusNow(MessageRef response) {
  Status status = TakeStatusAlone();
  if (!status.ok() || !response.has_message()) return status;
  StreamMessage received;
  BlockingOperation read;
  ReadNow(&received, &read);
  if (!read.ok()) return NoResponse();
  if (!DecodeAnyMessage(received.message, response, &status)) return status;
  {
    absl::MutexLock lock(&mutex_);
    if (context_ != nullptr) {
      context_->received_attachment_ = std::move(received.attachment);
    }
  }
  StreamMessage another;
  BlockingOperation more;
  ReadNow(&another, &more);
  if (!more.ok()) return status;
  return Status(StatusCode::INTERNAL,
                "the server sent a second response to a call that has one");
}

void ClientStream::Fail(Status status) {
  absl::Status reason(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  {
    absl::MutexLock lock(&mutex_);
    // A status that came already says that the call went well: it did not.
    if (has_status_ && !status_.ok()) return;
    status_ = std::move(status);
    has_status_ = true;
    if (closed_) return;
  }
  inbox_.End();
  Cancel(std::move(reason));
}

void ClientStream::Cancel(absl::Status reason) {
  CallHandle handle;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    handle = handle_;
    if (!handle) cancel_when_started_ = reason;
  }
  if (handle) transport_->Cancel(handle, std::move(reason));
}

bool ClientStream::IsAwaited() {
  if (inbox_.IsAwaited()) return true;
  absl::MutexLock lock(&mutex_);
  return waiting_.write != nullptr || waiting_.metadata != nullptr ||
         waiting_.finish != nullptr;
}

void ClientStream::Abandon() {
  {
    absl::MutexLock lock(&mutex_);
    context_ = nullptr;
    if (closed_) return;
  }
  Release(inbox_.Discard(), /*drained=*/false);
  Cancel(absl::CancelledError(kAbandoned));
}

// ---- Waiting.

// Without a transport everything is over at once, or interceptors end it.
bool ClientStream::Wait(BlockingOperation& operation) {
  if (transport_ != nullptr) {
    transport_->Wait(operation.done());
  } else {
    operation.done().WaitUntil(absl::InfiniteFuture());
  }
  return operation.ok();
}

void ClientStream::WakeWaiters() {
  if (transport_ != nullptr) transport_->WakeWaiters();
}

bool ClientStream::BlockingRead(MessageRef message, BufferChain* attachment) {
  StreamMessage received;
  BlockingOperation operation;
  Read(&received, message, attachment, &operation);
  return Wait(operation) && Decode(received, message, attachment);
}

bool ClientStream::BlockingWrite(ConstMessageRef message,
                                 WriteOptions options) {
  BlockingOperation operation;
  Write(message, std::move(options), &operation);
  return Wait(operation);
}

bool ClientStream::BlockingWritesDone() {
  BlockingOperation operation;
  WritesDone(&operation);
  return Wait(operation);
}

void ClientStream::BlockingWaitForInitialMetadata() {
  BlockingOperation operation;
  WaitForInitialMetadata(&operation);
  Wait(operation);
}

Status ClientStream::BlockingFinish(MessageRef response) {
  BlockingOperation operation;
  Finish(/*discard=*/!response.has_message(), response, &operation);
  Wait(operation);
  return TakeStatus(response);
}

}  // namespace rpc::internal
