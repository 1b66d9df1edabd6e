#include "rpc/internal/server_stream.h"

#include <utility>

#include "rpc/internal/any_message_codec.h"
#include "rpc/logging.h"

namespace rpc::internal {

bool ServerStream::BeginReading(IncomingFrame& frame) {
  inbox_.Reset(core().transport->limits().stream_window_bytes);
  if (!frame.has_message) SetReceivedAttachment(std::move(frame.attachment));
  Receive(frame);
  return true;
}

// ---- What the transport brings.

void ServerStream::OnFrame(IncomingFrame& frame) {
  if (gathering()) return ServerCall::OnFrame(frame);
  if (!CancelForLateHeader(frame)) Receive(frame);
}

void ServerStream::Receive(IncomingFrame& frame) {
  Release(frame.has_message ? inbox_.Add(frame) : frame.window_bytes,
          /*drained=*/false);
  if (frame.end) inbox_.End();
}

void ServerStream::OnMessageSent() {
  StreamOperation* write;
  {
    absl::MutexLock lock(&mutex_);
    write = std::exchange(write_, nullptr);
    sent_ = write == nullptr;
  }
  if (write != nullptr) write->Complete(true);
}

void ServerStream::OnInitialMetadataSent(bool ok) {
  StreamOperation* metadata;
  {
    absl::MutexLock lock(&mutex_);
    metadata = std::exchange(metadata_, nullptr);
    if (metadata == nullptr) metadata_sent_ = ok;
  }
  if (metadata != nullptr) metadata->Complete(ok);
}

void ServerStream::OnOrderlyEnd() { EndOperations(/*cancelled=*/false); }

void ServerStream::OnClosed(const CallOutcome& outcome) {
  if (outcome.status.ok()) OnOrderlyEnd();
  ServerCall::OnClosed(outcome);
}

void ServerStream::OnCutOff() { EndOperations(/*cancelled=*/true); }

void ServerStream::EndOperations(bool cancelled) {
  StreamOperation* metadata;
  StreamOperation* write;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    cancelled_ = cancelled;
    metadata = std::exchange(metadata_, nullptr);
    write = std::exchange(write_, nullptr);
  }
  inbox_.End();
  // What nobody told of was sent before the call's end, where that was sent.
  if (metadata != nullptr) metadata->Complete(!cancelled);
  if (write != nullptr) write->Complete(!cancelled);
  OnEnded(cancelled);
}

void ServerStream::OnComplete() {
  inbox_.Reset(0);
  absl::MutexLock lock(&mutex_);
  ended_ = cancelled_ = sent_ = false;
  metadata_sent_.reset();
  error_ = Status();
}

// ---- Operations.

void ServerStream::Read(StreamMessage* received, MessageRef message,
                        BufferChain* attachment, StreamOperation* operation) {
  if (interception() == nullptr) return ReadNow(received, operation);
  interception()->Read(received, message, attachment, operation);
}

// With interceptors, it was decoded for them.
bool ServerStream::Decode(StreamMessage& received, MessageRef message,
                          BufferChain* attachment) {
  return interception() != nullptr || DecodeNow(received, message, attachment);
}

bool ServerStream::DecodeNow(StreamMessage& received, MessageRef message,
                             BufferChain* attachment) {
  Status error;
  const bool decoded = DecodeAnyMessage(received.message, message, &error);
  if (attachment != nullptr) *attachment = std::move(received.attachment);
  received.attachment.clear();
  received.message.clear();
  bool drained = false;
  const uint64_t window_bytes = inbox_.NoteTaken(received, &drained);
  Release(window_bytes, drained);
  if (!decoded) {
    absl::MutexLock lock(&mutex_);
    error_ = std::move(error);
  }
  return decoded;
}

void ServerStream::FailWrite(Status error) {
  absl::MutexLock lock(&mutex_);
  error_ = std::move(error);
}

void ServerStream::Write(ConstMessageRef message, WriteOptions options,
                         StreamOperation* operation) {
  if (interception() == nullptr) {
    return WriteNow(message, std::move(options), operation);
  }
  interception()->Write(message, std::move(options), operation);
}

void ServerStream::WriteNow(ConstMessageRef message, WriteOptions options,
                            StreamOperation* operation) {
  bool ok;
  {
    absl::MutexLock lock(&mutex_);
    ok = !ended_ && error_.ok();
  }
  if (ok) {
    bool sent = false;
    Status error;
    ok = SendMessage(message, std::move(options.attachment()), &sent, &error);
    absl::MutexLock lock(&mutex_);
    if (!ok) {
      error_ = std::move(error);
    } else if (!sent && !std::exchange(sent_, false)) {
      ok = false;
      if (!ended_) {
        write_ = operation;
        return;
      }
    }
  }
  operation->Complete(ok);
}

// As long as nobody else knows of the operation, the call is not over.
void ServerStream::SendInitialMetadata(StreamOperation* operation) {
  bool ok = !initial_metadata_sent();
  if (ok) {
    absl::MutexLock lock(&mutex_);
    ok = !ended_;
  } else {
    Log(LogLevel::kError, "initial metadata was sent already");
  }
  if (ok) {
    SendInitialMetadataAlone();
    absl::MutexLock lock(&mutex_);
    if (!metadata_sent_.has_value() && !ended_) {
      metadata_ = operation;
      return;
    }
    ok = metadata_sent_.value_or(!cancelled_);
  }
  operation->Complete(ok);
}

void ServerStream::RespondAtEnd(Status status, ConstMessageRef response,
                                StreamOperation* operation) {
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    status = error_;
  }
  if (interception() != nullptr) {
    return interception()->Respond(status, response, operation);
  }
  Respond(status, response);
  if (operation != nullptr) operation->Complete(true);
}

void ServerStream::WriteAtEnd(ConstMessageRef message, WriteOptions options,
                              Status status, StreamOperation* operation) {
  bool sent = false;
  if (status.ok()) {
    SetAttachment(std::move(options.attachment()));
    return RespondAtEnd(std::move(status), message, operation);
  }
  if (interception() != nullptr) {
    interception()->Write(message, std::move(options), nullptr);
  } else if (Status error; !SendMessage(
                 message, std::move(options.attachment()), &sent, &error)) {
    status = std::move(error);
  }
  RespondAtEnd(std::move(status), ConstMessageRef(), operation);
}

}  // namespace rpc::internal
