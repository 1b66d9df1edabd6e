#include "rpc/internal/stream_inbox.h"

#include <algorithm>
#include <utility>

namespace rpc::internal {
namespace {

// Copying costs less than a receive buffer that is kept.
constexpr uint64_t kCopyBytes = 2048;

BufferChain CopyOf(const BufferChain& chain) {
  if (chain.empty()) return BufferChain();
  Buffer copy = Buffer::FromHeap(chain.size());
  chain.CopyTo(copy.mutable_data());
  return BufferChain(std::move(copy));
}

}  // namespace

void StreamInbox::Reset(uint64_t window_bytes) {
  absl::MutexLock lock(&mutex_);
  messages_.clear();
  ended_ = discarding_ = false;
  taken_bytes_ = 0;
  release_bytes_ = std::max<uint64_t>(window_bytes / 4, 1);
}

uint64_t StreamInbox::Add(IncomingFrame& frame) {
  StreamMessage message = {std::move(frame.message),
                           std::move(frame.attachment), frame.window_bytes};
  StreamOperation* operation = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (discarding_) return NoteBytes(message.window_bytes);
    if (waiting_ == nullptr) {
      if (message.message.size() + message.attachment.size() <= kCopyBytes) {
        message.message = CopyOf(message.message);
        message.attachment = CopyOf(message.attachment);
      }
      messages_.push_back(std::move(message));
      return 0;
    }
    *std::exchange(target_, nullptr) = std::move(message);
    operation = std::exchange(waiting_, nullptr);
  }
  operation->Complete(true);
  return 0;
}

void StreamInbox::End() {
  StreamOperation* operation = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
    target_ = nullptr;
    operation = std::exchange(waiting_, nullptr);
  }
  if (operation != nullptr) operation->Complete(false);
}

uint64_t StreamInbox::Discard() {
  absl::MutexLock lock(&mutex_);
  discarding_ = true;
  uint64_t window_bytes = std::exchange(taken_bytes_, 0);
  for (const StreamMessage& message : messages_) {
    window_bytes += message.window_bytes;
  }
  messages_.clear();
  return window_bytes;
}

void StreamInbox::Take(StreamMessage* message, StreamOperation* operation) {
  bool ok = false;
  {
    absl::MutexLock lock(&mutex_);
    if (!messages_.empty()) {
      *message = std::move(messages_.front());
      messages_.pop_front();
      ok = true;
    } else if (!ended_) {
      target_ = message;
      waiting_ = operation;
      return;
    }
  }
  operation->Complete(ok);
}

uint64_t StreamInbox::NoteTaken(const StreamMessage& message, bool* drained) {
  absl::MutexLock lock(&mutex_);
  *drained = messages_.empty();
  return NoteBytes(message.window_bytes);
}

uint64_t StreamInbox::NoteBytes(uint64_t bytes) {
  taken_bytes_ += bytes;
  return taken_bytes_ >= release_bytes_ ? std::exchange(taken_bytes_, 0) : 0;
}

}  // namespace rpc::internal
