#include "rpc/internal/server_stream.h"

#include <utility>

namespace rpc::internal {

bool ServerStream::BeginReading(IncomingFrame& frame) {
  inbox_.Reset(core().transport->limits().stream_window_bytes);
  if (!frame.has_message) TakeAttachment(frame);
  OnFrame(frame);
  return true;
}

void ServerStream::Run() { RunOnExecutor(); }

// ---- What the transport brings.

void ServerStream::OnFrame(IncomingFrame& frame) {
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

void ServerStream::OnCutOff() {
  StreamOperation* write;
  {
    absl::MutexLock lock(&mutex_);
    cut_off_ = true;
    write = std::exchange(write_, nullptr);
  }
  inbox_.End();
  if (write != nullptr) write->Complete(false);
}

void ServerStream::OnComplete() {
  inbox_.Reset(0);
  absl::MutexLock lock(&mutex_);
  cut_off_ = sent_ = false;
  error_ = Status();
}

// ---- What the handler does.

bool ServerStream::Read(Message* message, BufferChain* attachment) {
  StreamMessage received;
  BlockingOperation operation;
  inbox_.Take(&received, &operation);
  operation.done().WaitUntil(absl::InfiniteFuture());
  if (!operation.ok()) return false;
  Status error;
  const bool decoded = DecodeMessage(received.message, message, &error);
  if (attachment != nullptr) *attachment = std::move(received.attachment);
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

bool ServerStream::Write(const Message& message, WriteOptions options) {
  {
    absl::MutexLock lock(&mutex_);
    if (cut_off_ || !error_.ok()) return false;
  }
  bool sent = false;
  Status error;
  const bool posted =
      SendMessage(message, std::move(options.attachment()), &sent, &error);
  BlockingOperation operation;
  {
    absl::MutexLock lock(&mutex_);
    if (!posted) error_ = std::move(error);
    if (!posted || sent || std::exchange(sent_, false)) return posted;
    if (cut_off_) return false;
    write_ = &operation;
  }
  operation.done().WaitUntil(absl::InfiniteFuture());
  return operation.ok();
}

void ServerStream::RespondAndFinish(Status status, const Message* response) {
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    status = error_;
  }
  Respond(status, response);
  Finished();
}

}  // namespace rpc::internal
