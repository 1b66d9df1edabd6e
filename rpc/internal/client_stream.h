// A stream on the client: a call with any number of messages in either
// direction. Used by generated code through the classes of sync_stream.h,
// client_stream_callback.h and async_stream.h.
//
// Knows frames, metadata and the status, and no message type. What a user does
// with it are operations (stream_operation.h), one of each kind at a time;
// those that block are on top of them.
//
// Where its channel has interceptors, they see each operation on its way
// (client_interception.h).
//
// Two refer to it: the user's object, until Abandon, and the transport, until
// OnClosed.
//
// Thread rule: reading, writing and finishing may be done by different threads,
// each by one at a time. All but writing may begin before the call does.
#ifndef VERBENA_RPC_INTERNAL_CLIENT_STREAM_H_
#define VERBENA_RPC_INTERNAL_CLIENT_STREAM_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_interception.h"
#include "rpc/internal/message_codec.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/stream_inbox.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/status.h"
#include "rpc/transport.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class ClientStream final : public CallSink,
                           public InterceptedStream,
                           public std::enable_shared_from_this<ClientStream> {
 public:
  // What its operations' completions may do; see CallOptions::quick.
  enum class Completions { kQuick, kMayTakeLong };

  // One that is not begun. `context` is needed until Abandon.
  static std::shared_ptr<ClientStream> Create(ChannelInterface* channel,
                                              const RpcMethod& method,
                                              ClientContext* context,
                                              Completions completions);
  // Begins the call. `request`: the only message that this side sends; none:
  // they come by Write. A call that cannot begin is over at once, and its
  // status says why. `started`, where it is not null, is completed with whether
  // it may run; `request` is needed until then, or by the call's end.
  void StartCall(ConstMessageRef request, StreamOperation* started = nullptr);
  // The same; `request` is needed until this returns.
  void StartAtOnce(ConstMessageRef request);
  // The same in two steps: `request` is needed for the first, and what the
  // context says besides its deadline for the second. From the first on no
  // message is needed for longer than the function that gets it.
  void Prepare(ConstMessageRef request);
  // Before it begins: threads in CompletionQueue::Next, and nobody else, hear
  // of the call, and drive its transport.
  void SetForGuests(bool for_guests) { for_guests_ = for_guests; }
  // `started` is completed when the call is on its way (false: it will never
  // be); where the request ends what this side says, when it has begun.
  void StartPrepared(StreamOperation* started = nullptr);
  // Create and StartCall, for those that block.
  static std::shared_ptr<ClientStream> Start(ChannelInterface* channel,
                                             const RpcMethod& method,
                                             ClientContext* context,
                                             ConstMessageRef request);

  // ---- Operations.

  // False: there is no further message. What is for Decode is said here, too:
  // interceptors see what came.
  void Read(StreamMessage* received, MessageRef message,
            BufferChain* attachment, StreamOperation* operation);
  // Parses what was read, and is done with it. False where it does not parse:
  // the call fails then. `attachment` may be null.
  bool Decode(StreamMessage& received, MessageRef message,
              BufferChain* attachment);
  // Needed until it returns: `message`. Done when the next one may be written.
  // False: the call is over, or will be.
  void Write(ConstMessageRef message, WriteOptions options,
             StreamOperation* operation);
  // Half-close. Not done while the call waits for a connection.
  void WritesDone(StreamOperation* operation);
  // Done when the server's initial metadata came; false: they never will.
  void WaitForInitialMetadata(StreamOperation* operation);
  // Done, with true, when the call is over: TakeStatus says how. `discard`:
  // what was not read is thrown away. `response` as for TakeStatus.
  void Finish(bool discard, MessageRef response, StreamOperation* operation);
  // Once finished. `response`: of a stream whose server sends one message,
  // which is there where the status is OK; else none.
  Status TakeStatus(MessageRef response);
  // Done, with true, when nothing more comes. No interceptor sees it: they see
  // the Finish that follows.
  void WaitForEnd(StreamOperation* operation);

  // False: it is over, and certainly never left.
  bool MayRun() override;
  // The channel, if it has a transport to drive.
  ChannelInterface* driven_channel() const {
    return target_.transport == nullptr ? nullptr : channel_.get();
  }
  // Whether an operation waits.
  bool IsAwaited();
  // Ends the call with `status`, whatever else comes.
  void Fail(Status status) override;
  // The user's object goes: the call, if it still runs, is cancelled.
  void Abandon();

  // ---- The same, for threads that wait.

  // False where there is no message, or it does not parse: the call fails then.
  bool BlockingRead(MessageRef message, BufferChain* attachment);
  bool BlockingWrite(ConstMessageRef message, WriteOptions options);
  bool BlockingWritesDone();
  void BlockingWaitForInitialMetadata();
  // `response` as for TakeStatus; without one, what was not read is thrown
  // away.
  Status BlockingFinish(MessageRef response = MessageRef());

  // ---- CallSink.

  void OnFrame(IncomingFrame& frame) override;
  void OnPeer(std::string_view peer) override;
  void OnSent() override;
  void OnClosed(const CallOutcome& outcome) override;

 private:
  static constexpr char kAbandoned[] = "the stream's object was destroyed";

  // The frame that opens the call, and what it refers to.
  struct Opening {
    MessageScratch scratch;
    OutgoingFrame frame;
  };
  // Operations that wait.
  struct Waiting {
    StreamOperation* start = nullptr;
    StreamOperation* last = nullptr;  // behind the opening
    StreamOperation* write = nullptr;
    StreamOperation* metadata = nullptr;
    StreamOperation* finish = nullptr;
  };

  ClientStream(ChannelInterface* channel, const RpcMethod& method,
               ClientContext* context, Completions completions);

  // ---- InterceptedStream: the operations themselves.

  void StartNow(ConstMessageRef request) override;
  void NeverBegan(Status status) override;
  void BeginHijacked() override;
  void ReadNow(StreamMessage* message, StreamOperation* operation) override;
  bool DecodeNow(StreamMessage& received, MessageRef message,
                 BufferChain* attachment) override;
  void WriteNow(ConstMessageRef message, WriteOptions options,
                StreamOperation* operation) override;
  void WritesDoneNow(StreamOperation* operation) override;
  void WaitForInitialMetadataNow(StreamOperation* operation) override;
  void FinishNow(bool discard, StreamOperation* operation) override;
  Status TakeStatusNow(MessageRef response) override;
  void WakeWaiters() override;

  // False: the call cannot begin, and is over.
  bool Open(ConstMessageRef request, Opening& opening);
  bool Begin(Status* error);
  bool EncodeRequest(ConstMessageRef request, Opening& opening, Status* error);
  void Launch(OutgoingFrame& frame);
  // False: the call may not run, with the reason.
  bool AddContext(ClientContext& context, OutgoingFrame& frame, Status* error);
  void Opened();
  Waiting TakeWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The call is over.
  void EndOperations(const Waiting& waiting, bool may_have_run);
  bool WasCancelledEarly() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AcceptHeader(const IncomingFrame& frame)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasInitialMetadata() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(OutgoingFrame& frame, StreamOperation* operation);
  void Taken(const StreamMessage& message);
  void Release(uint64_t window_bytes, bool drained);
  void Cancel(absl::Status reason);
  // The status, which a stream without a response ends with.
  Status TakeStatusAlone();
  bool Wait(BlockingOperation& operation);

  // Kept until both have done with the stream.
  const std::shared_ptr<ChannelInterface> channel_;
  const CallTarget& target_;  // the channel's
  ClientTransport* const transport_;
  const uint32_t method_;
  const Completions completions_;
  StreamInbox inbox_;
  // Null: it has no interceptors.
  const std::shared_ptr<ClientInterception> interception_;
  bool for_guests_ = false;
  std::unique_ptr<Opening> prepared_;  // null: nothing is, or it cannot begin

  absl::Mutex mutex_;
  std::shared_ptr<ClientStream> self_ ABSL_GUARDED_BY(mutex_);  // transport's
  ClientContext* context_ ABSL_GUARDED_BY(mutex_);  // null: abandoned
  CallHandle handle_ ABSL_GUARDED_BY(mutex_);       // 0: not started yet
  absl::Status cancel_when_started_ ABSL_GUARDED_BY(mutex_);
  bool opening_ ABSL_GUARDED_BY(mutex_) = false;       // its OnSent is to come
  bool launching_ ABSL_GUARDED_BY(mutex_) = false;     // within StartCall
  bool opened_early_ ABSL_GUARDED_BY(mutex_) = false;  // while launching_
  bool any_frame_ ABSL_GUARDED_BY(mutex_) = false;
  bool initial_metadata_ ABSL_GUARDED_BY(mutex_) = false;  // they came
  bool writes_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_status_ ABSL_GUARDED_BY(mutex_) = false;  // status_ is final
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool may_have_run_ ABSL_GUARDED_BY(mutex_) = false;  // once closed
  Status status_ ABSL_GUARDED_BY(mutex_);
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
  bool sent_ ABSL_GUARDED_BY(mutex_) = false;  // before its write got to wait
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CLIENT_STREAM_H_
