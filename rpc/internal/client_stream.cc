#include "rpc/internal/client_stream.h"

#include <utility>

#include "absl/base/optimization.h"
#include "rpc/internal/any_message_codec.h"
#include "rpc/internal/call_errors.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/channel_interceptors.h"
#include "rpc/internal/received_metadata.h"

namespace rpc::internal {
namespace {

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
    if (ABSL_PREDICT_FALSE(launching_) && WasCancelledEarly()) return;
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

void ClientStream::OnPeer(std::string_view peer) {
  absl::MutexLock lock(&mutex_);
  if (context_ != nullptr) context_->received_->set_peer(peer);
}

// By a TryCancel that found no handle yet: Launch will cancel, but what came
// since is no answer any more.
bool ClientStream::WasCancelledEarly() {
  if (context_ == nullptr ||
      (context_->phase_.load() & ClientContext::kCancelled) == 0) {
    return false;
  }
  status_ = Cancelled();
  has_status_ = any_frame_ = true;
  return true;
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
    opened_early_ = opened && launching_;
    if (opened_early_) return;
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
    // Launch has the context still, which may go with an operation's end.
    if (!launching_) waiting = TakeWaiting();
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
  received.attachment.clear();
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
    if (!closed_ || launching_) {
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
  return Status(StatusCode::UNIMPLEMENTED,
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
