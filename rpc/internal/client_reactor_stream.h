// The stream of a client's reactor: its operations, and what the reactor hears
// of them. Used by generated code through client_stream_callback.h.
//
// It belongs to itself: made when a method of a stub gets the reactor, gone
// when the reactor's OnDone has returned.
#ifndef VERBENA_RPC_INTERNAL_CLIENT_REACTOR_STREAM_H_
#define VERBENA_RPC_INTERNAL_CLIENT_REACTOR_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_stream.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/reactions.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class ClientReactorStream;

// What the three kinds of reactors have in common. See
// client_stream_callback.h.
class ClientStreamReactor {
 public:
  // REQUIRES: OnDone has begun, or the call was never started.
  virtual ~ClientStreamReactor();
  ClientStreamReactor(const ClientStreamReactor&) = delete;
  ClientStreamReactor& operator=(const ClientStreamReactor&) = delete;

  // Begins the call, and what was asked of it before. REQUIRES: the reactor was
  // given to a method of a stub. Once a call.
  void StartCall();

  // OnDone waits until each hold is removed: for operations that are begun
  // outside of reactions.
  void AddHold() { AddMultipleHolds(1); }
  void AddMultipleHolds(int holds);
  void RemoveHold();

  // The server's initial metadata can be read from the context; false: there
  // will be none.
  virtual void OnReadInitialMetadataDone(bool /*ok*/) {}
  // The call is over, and nothing that was begun is left: the last reaction,
  // always. May destroy the reactor and the context.
  virtual void OnDone(const Status& /*status*/) {}

 protected:
  ClientStreamReactor() = default;
  ClientReactorStream& stream() { return *stream_; }

 private:
  friend class ClientReactorStream;

  // For the kinds that have them.
  virtual void OnReadDone(bool /*ok*/) {}
  virtual void OnWriteDone(bool /*ok*/) {}
  virtual void OnWritesDoneDone(bool /*ok*/) {}

  ClientReactorStream* stream_ = nullptr;
};

class ClientReactorStream final : private Reactions, private Executor::Task {
 public:
  // What a stub's method says. `request` and `response` are none where the
  // stream's messages come one by one.
  static void Create(ChannelInterface* channel, const RpcMethod& method,
                     ClientContext* context, ConstMessageRef request,
                     MessageRef response, ClientStreamReactor* reactor);

  // One whose context is corked begins with what is written first.
  void StartCall();
  // Instead of it.
  void NeverStart() { delete this; }
  void Read(MessageRef message, BufferChain* attachment);
  void Write(ConstMessageRef message, WriteOptions options);
  void WritesDone();
  void AddHolds(int64_t holds) { Hold(holds); }
  void RemoveHold();

 private:
  ClientReactorStream(std::shared_ptr<ClientStream> stream,
                      ClientContext* context, ConstMessageRef request,
                      MessageRef response, ClientStreamReactor* reactor);
  ~ClientReactorStream() = default;

  void React(Event event) override;
  void OnEnd() override;
  void PostReactions() override;
  void RunTask() override { Run(); }
  // The last thing: tells the reactor.
  void Finished();

  class Finish final : public StreamOperation {
   public:
    explicit Finish(ClientReactorStream* stream) : stream_(*stream) {}
    void Complete(bool /*ok*/) override { stream_.Finished(); }

   private:
    ClientReactorStream& stream_;
  };

  class Cork;

  bool IsCorked() const;
  // Begins the call, once.
  void Launch();
  void LaunchCorked();
  // Begins it, once the call has begun.
  void StartWhatWasEarly();
  // Keeps what is written before the call has begun for later; begins the call
  // where it waits for that. False: it has begun.
  template <typename Keep>
  bool KeepEarly(Keep keep);

  // What was asked for before the call has begun.
  struct Early {
    ConstMessageRef message;
    WriteOptions options;
    bool writes_done = false;
  };

  const std::shared_ptr<ClientStream> stream_;
  ClientContext& context_;
  ClientStreamReactor& reactor_;
  const ConstMessageRef request_;
  const MessageRef response_;

  // Another thread, with a hold, may write while the call begins.
  std::atomic<bool> started_{false};
  absl::Mutex early_mutex_;
  Early early_ ABSL_GUARDED_BY(early_mutex_);
  std::shared_ptr<Cork> cork_ ABSL_GUARDED_BY(early_mutex_);  // or null

  StreamMessage received_;
  MessageRef read_message_;
  BufferChain* read_attachment_ = nullptr;
  Operation metadata_{this, kInitialMetadata};
  Operation read_{this, kRead};
  Operation write_{this, kWrite};
  Operation writes_done_{this, kWritesDone};
  Operation closed_{this, kOver};
  Finish finish_{this};
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CLIENT_REACTOR_STREAM_H_
