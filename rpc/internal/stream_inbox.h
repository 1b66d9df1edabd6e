// The messages of a stream that came and that nobody has taken yet, or the
// operation that waits for the next.
//
//   inbox.Add(frame);                    // the transport's callbacks
//   inbox.Take(&message, &operation);    // the user
//   ... operation.Complete(true) ...
//   release = inbox.NoteTaken(message, &drained);
//
// What waits here is bounded by the stream's window. A small message is copied,
// so that it does not keep a receive buffer many times its size.
//
// Thread-safe; one Take at a time.
#ifndef VERBENA_RPC_INTERNAL_STREAM_INBOX_H_
#define VERBENA_RPC_INTERNAL_STREAM_INBOX_H_

#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/transport.h"

namespace rpc::internal {

class StreamInbox {
 public:
  // As new, for another stream, whose windows begin with so many bytes.
  // REQUIRES: no operation waits.
  void Reset(uint64_t window_bytes);

  // A message came. Returns how much of the window is to be given back at once:
  // that of a message which nobody will take.
  uint64_t Add(IncomingFrame& frame);

  // No further message comes. What is here can still be taken; then operations
  // complete with false.
  void End();

  // Throws away what is here and what will come. Returns as Add does.
  uint64_t Discard();

  // Completes `operation` with the next message in `*message`, or with false.
  void Take(StreamMessage* message, StreamOperation* operation);

  // Whether an operation waits.
  bool IsAwaited() {
    absl::MutexLock lock(&mutex_);
    return waiting_ != nullptr;
  }

  // To be said of each message that was taken. Returns how much of the window
  // to give back now, a good part of it at a time; see ClientTransport::Release
  // for `drained`.
  uint64_t NoteTaken(const StreamMessage& message, bool* drained);

 private:
  uint64_t NoteBytes(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::deque<StreamMessage> messages_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool discarding_ ABSL_GUARDED_BY(mutex_) = false;
  StreamMessage* target_ ABSL_GUARDED_BY(mutex_) = nullptr;
  StreamOperation* waiting_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t taken_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t release_bytes_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_STREAM_INBOX_H_
