// A stream on the client: a call with any number of messages in either
// direction. Used by generated code through the classes of sync_stream.h.
//
// Knows frames, metadata and the status, and no message type. What a user does
// with it are operations (stream_operation.h), one of each kind at a time;
// those that block are on top of them.
//
// Two refer to it: the user's object, until Abandon, and the transport, until
// OnClosed.
//
// Thread rule: reading, writing and finishing may be done by different threads,
// each by one at a time.
#ifndef VERBENA_RPC_INTERNAL_CLIENT_STREAM_H_
#define VERBENA_RPC_INTERNAL_CLIENT_STREAM_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/message_lite.h"
#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/stream_inbox.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/status.h"
#include "rpc/transport.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class ClientStream final : public CallSink {
 public:
  using Message = google::protobuf::MessageLite;

  // Begins the call. `request`: the only message that this side sends; null:
  // they come by Write. `context` is needed until Abandon. A call that cannot
  // begin is over at once, and its status says why.
  static std::shared_ptr<ClientStream> Start(ChannelInterface* channel,
                                             const RpcMethod& method,
                                             ClientContext* context,
                                             const Message* request);

  // ---- Operations.

  // False: there is no further message.
  void Read(StreamMessage* message, StreamOperation* operation);
  // To be said of what was read, when it is done with.
  void Taken(const StreamMessage& message);
  // Needed until it returns: `message`. Done when the next one may be written.
  // False: the call is over, or will be.
  void Write(const Message& message, WriteOptions options,
             StreamOperation* operation);
  // Half-close.
  void WritesDone(StreamOperation* operation);
  // Done when the server's initial metadata came; false: they never will.
  void WaitForInitialMetadata(StreamOperation* operation);
  // Done, with true, when the call is over: status() says how. `discard`: what
  // was not read is thrown away.
  void Finish(bool discard, StreamOperation* operation);
  // Once finished.
  Status TakeStatus();

  // Ends the call with `status`, whatever else comes.
  void Fail(Status status);
  // The user's object goes: the call, if it still runs, is cancelled.
  void Abandon();

  // ---- The same, for threads that wait.

  // False where there is no message, or it does not parse: the call fails then.
  bool BlockingRead(Message* message, BufferChain* attachment);
  bool BlockingWrite(const Message& message, WriteOptions options);
  bool BlockingWritesDone();
  void BlockingWaitForInitialMetadata();
  Status BlockingFinish();
  // The same for a stream whose server sends one message.
  Status BlockingFinish(Message* response);

  // ---- CallSink.

  void OnFrame(IncomingFrame& frame) override;
  void OnSent() override;
  void OnClosed(const CallOutcome& outcome) override;
  bool IsQuick() const override { return true; }

 private:
  ClientStream(ChannelInterface* channel, ClientContext* context);

  // False: the call cannot begin, and why.
  bool Begin(Status* error);
  void StartCall(const RpcMethod& method, OutgoingFrame& frame);
  void NeverBegan(Status status);
  bool AcceptHeader(const IncomingFrame& frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(OutgoingFrame& frame, StreamOperation* operation);
  void Release(uint64_t window_bytes, bool drained);
  void Cancel(absl::Status reason);
  bool Wait(BlockingOperation& operation);

  // Kept until both have done with the stream.
  const std::shared_ptr<ChannelInterface> channel_;
  const CallTarget& target_;  // the channel's
  ClientTransport* const transport_;
  StreamInbox inbox_;

  absl::Mutex mutex_;
  std::shared_ptr<ClientStream> self_ ABSL_GUARDED_BY(mutex_);  // transport's
  ClientContext* context_ ABSL_GUARDED_BY(mutex_);  // null: abandoned
  CallHandle handle_ ABSL_GUARDED_BY(mutex_);       // 0: not started yet
  absl::Status cancel_when_started_ ABSL_GUARDED_BY(mutex_);
  bool opening_ ABSL_GUARDED_BY(mutex_) = false;  // its OnSent is to come
  bool any_frame_ ABSL_GUARDED_BY(mutex_) = false;
  bool writes_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_status_ ABSL_GUARDED_BY(mutex_) = false;  // status_ is final
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Status status_ ABSL_GUARDED_BY(mutex_);
  StreamOperation* write_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool sent_ ABSL_GUARDED_BY(mutex_) = false;  // before it got to be write_
  StreamOperation* metadata_ ABSL_GUARDED_BY(mutex_) = nullptr;
  StreamOperation* finish_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CLIENT_STREAM_H_
