// A stream on the server, as handlers of the synchronous API use it. Used by
// generated code through the classes of sync_stream.h.
//
// The handler runs on a thread of the server's executor for as long as the
// stream does (verbena.handler_threads). What comes meanwhile waits in the
// inbox.
//
// Thread rule: reading and writing may be done by different threads, each by
// one at a time, until the handler returns.
#ifndef VERBENA_RPC_INTERNAL_SERVER_STREAM_H_
#define VERBENA_RPC_INTERNAL_SERVER_STREAM_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/internal/stream_inbox.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/internal/sync_unary_handler.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class ServerStream : public SyncServerCall {
 public:
  // False where there is no message, or it does not parse: the call ends with
  // INTERNAL then, unless the handler says something else.
  bool Read(Message* message, BufferChain* attachment);
  // Blocks until the next may be written. False: nobody will read it.
  bool Write(const Message& message, WriteOptions options);
  void SendInitialMetadata() { SendInitialMetadataAlone(); }

 protected:
  ServerStream() = default;

  // DecodeRequest of a call whose client sends any number of messages.
  bool BeginReading(IncomingFrame& frame);
  // `status` is the handler's; `response` null: there were several. What went
  // wrong unseen takes the place of OK.
  void RespondAndFinish(Status status, const Message* response);

 private:
  void Run() final;
  void OnFrame(IncomingFrame& frame) final;
  void OnMessageSent() final;
  void OnCutOff() final;
  void OnComplete() final;
  // They put a message into a queue, or wake the handler.
  bool IsQuick() const final { return true; }

  StreamInbox inbox_;
  absl::Mutex mutex_;
  bool cut_off_ ABSL_GUARDED_BY(mutex_) = false;
  StreamOperation* write_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool sent_ ABSL_GUARDED_BY(mutex_) = false;  // before it got to be write_
  Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SERVER_STREAM_H_
