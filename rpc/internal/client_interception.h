// What the interceptors of a client's call do to it: the operations of a
// ClientStream whose channel has interceptors go through here on their way to
// the stream, and from it to the application.
//
//   the application -> ClientStream::Write -> ClientInterception::Write
//     -> interceptors, first to last -> InterceptedStream::WriteNow
//     -> interceptors, last to first -> the application's operation
//
// Messages are decoded before the application's operation is completed, so that
// interceptors see them. What a hijacked call receives its interceptor says.
//
// It belongs to the stream and to the call's context, as interceptors hear of
// TryCancel for as long as there is a context.
//
// Thread rule: as ClientStream's operations.
#ifndef VERBENA_RPC_INTERNAL_CLIENT_INTERCEPTION_H_
#define VERBENA_RPC_INTERNAL_CLIENT_INTERCEPTION_H_

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/client_interceptor.h"
#include "rpc/internal/cancel_listener.h"
#include "rpc/internal/intercepted_message.h"
#include "rpc/internal/interceptors.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/received_metadata.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/send_order.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/metadata.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

// The stream below: its operations as they are without interceptors. See
// ClientStream for what each does.
class InterceptedStream {
 public:
  virtual void StartNow(ConstMessageRef request) = 0;
  // Instead of it: the call is over, or is an interceptor's.
  virtual void NeverBegan(Status status) = 0;
  virtual void BeginHijacked() = 0;
  virtual bool MayRun() = 0;
  virtual void ReadNow(StreamMessage* message, StreamOperation* operation) = 0;
  virtual bool DecodeNow(StreamMessage& received, MessageRef message,
                         BufferChain* attachment) = 0;
  virtual void WriteNow(ConstMessageRef message, WriteOptions options,
                        StreamOperation* operation) = 0;
  virtual void WritesDoneNow(StreamOperation* operation) = 0;
  virtual void WaitForInitialMetadataNow(StreamOperation* operation) = 0;
  virtual void FinishNow(bool discard, StreamOperation* operation) = 0;
  virtual Status TakeStatusNow(MessageRef response) = 0;
  virtual void Fail(Status status) = 0;
  // Threads in the transport's Wait look at their events again.
  virtual void WakeWaiters() = 0;

 protected:
  ~InterceptedStream() = default;
};

class ClientInterception final : public CancelListener {
 public:
  // Null where the channel has no interceptors. `context` gets it, too, unless
  // it served a call before.
  static std::shared_ptr<ClientInterception> Create(const CallTarget& target,
                                                    const RpcMethod& method,
                                                    ClientContext* context);

  // ---- The operations; `stream` is kept until each is completed.
  using Stream = std::shared_ptr<InterceptedStream>;

  // `operation` may be null; it is completed with whether the call may run.
  void Start(Stream stream, InterceptedMessage request,
             StreamOperation* operation);
  // The same in two steps. From now on messages are needed until the function
  // returns that they are given to.
  void Prepare(ConstMessageRef request);
  void StartPrepared(Stream stream, StreamOperation* operation);
  void Read(Stream stream, StreamMessage* received, MessageRef message,
            BufferChain* attachment, StreamOperation* operation);
  void Write(Stream stream, ConstMessageRef message, WriteOptions options,
             StreamOperation* operation);
  void WritesDone(Stream stream, StreamOperation* operation);
  void WaitForInitialMetadata(Stream stream, StreamOperation* operation);
  void Finish(Stream stream, bool discard, MessageRef response,
              StreamOperation* operation);
  // Once finished.
  Status TakeStatus() { return std::move(status_); }

  // CancelListener
  void OnTryCancel() override;

 private:
  class Operation;
  class SendOperation;
  class ReceiveOperation;
  class StartOperation;
  class WriteOperation;
  class WritesDoneOperation;
  class MetadataOperation;
  class ReadOperation;
  class FinishOperation;

  ClientInterception(const CallTarget& target, const RpcMethod& method,
                     ClientContext* context);

  // Of the first of a call's operations that receives: it is shown the initial
  // metadata, too.
  bool TakeMetadataTurn() { return !metadata_taken_.exchange(true); }
  MetadataMap* sent_metadata() { return &context_.sent_->pairs; }
  ReceivedMetadata& received() { return *context_.received_; }

  // What is received, and from whom, is known when the call is on its way or
  // hijacked: `operation` goes on then.
  void GoWhenStarted(Operation* operation);
  void Started();

  ClientContext& context_;
  experimental::ClientRpcInfo info_;
  Interceptors interceptors_;
  SendOrder send_order_;
  std::atomic<bool> metadata_taken_{false};
  std::optional<InterceptedMessage> prepared_;
  bool messages_stay_ = true;  // until their operation is completed
  Status status_;

  absl::Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Operation*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CLIENT_INTERCEPTION_H_
