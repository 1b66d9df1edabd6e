// A stream on the server: what its handler does with it are operations
// (stream_operation.h), one of each kind at a time. Below it are one class for
// each API: sync_server_stream.h, callback_server_stream.h,
// async_server_call.h.
//
// What comes while no operation waits for it waits in the inbox.
//
// Thread rule: reading and writing may be done by different threads, each by
// one at a time, until the handler's side has finished.
#ifndef VERBENA_RPC_INTERNAL_SERVER_STREAM_H_
#define VERBENA_RPC_INTERNAL_SERVER_STREAM_H_

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/server_call.h"
#include "rpc/internal/stream_inbox.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/status.h"
#include "rpc/transport.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class ServerStream : public ServerCall {
 protected:
  explicit ServerStream(ServerContextBase* context) : ServerCall(context) {}

  // DecodeRequest of a call whose client sends any number of messages.
  bool BeginReading(IncomingFrame& frame);

  // False: there is no further message. What is for Decode is said here, too,
  // as of ClientStream.
  void Read(StreamMessage* received, MessageRef message,
            BufferChain* attachment, StreamOperation* operation);
  // Parses what was read, and is done with it. False where it does not parse:
  // the call ends with INTERNAL then, unless the handler says something else.
  // `attachment` may be null.
  bool Decode(StreamMessage& received, MessageRef message,
              BufferChain* attachment);
  // Needed until it returns: `message`. Done when the next one may be written.
  // False: nobody will read it.
  void Write(ConstMessageRef message, WriteOptions options,
             StreamOperation* operation);
  // What came is not read, nor what comes. REQUIRES: no Read waits.
  void DiscardUnread() { Release(inbox_.Discard(), /*drained=*/true); }
  // Sends it now, and not with the first message; at most once.
  void SendInitialMetadata(StreamOperation* operation);
  // Ends the call. `status` is the handler's; `response` none: there were
  // several. What went wrong unseen takes the place of OK. `operation`, where
  // it is not null, is done when `response` is not needed any more.
  void RespondAtEnd(Status status, ConstMessageRef response,
                    StreamOperation* operation = nullptr);
  // Write and RespondAtEnd, by one frame where `status` is OK.
  void WriteAtEnd(ConstMessageRef message, WriteOptions options, Status status,
                  StreamOperation* operation = nullptr);

  // The same without interceptors.
  void ReadNow(StreamMessage* message, StreamOperation* operation) final {
    inbox_.Take(message, operation);
  }
  bool DecodeNow(StreamMessage& received, MessageRef message,
                 BufferChain* attachment) final;
  void WriteNow(ConstMessageRef message, WriteOptions options,
                StreamOperation* operation) final;

  void OnComplete() override;

 private:
  void OnFrame(IncomingFrame& frame) final;
  void OnClosed(const CallOutcome& outcome) final;
  void Receive(IncomingFrame& frame);
  void OnMessageSent() final;
  void OnInitialMetadataSent(bool ok) final;
  void OnCutOff() final;
  void OnOrderlyEnd() final;
  void FailWrite(Status error) final;
  // Nothing comes or goes any more; `cancelled`: nobody waits for the rest of
  // the stream.
  virtual void OnEnded(bool /*cancelled*/) {}
  void EndOperations(bool cancelled);

  StreamInbox inbox_;
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;  // when it ended
  StreamOperation* metadata_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Or not, before it got to be metadata_.
  std::optional<bool> metadata_sent_ ABSL_GUARDED_BY(mutex_);
  StreamOperation* write_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool sent_ ABSL_GUARDED_BY(mutex_) = false;  // before it got to be write_
  Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SERVER_STREAM_H_
