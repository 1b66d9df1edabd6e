// A call on the client whose operations are events of a completion queue: what
// is behind the classes of async_unary_call.h and async_stream.h.
//
// It lives until its user's object is gone and every operation's event was
// taken; a call that still runs then is cancelled.
//
// Thread rule: as ClientStream.
#ifndef VERBENA_RPC_INTERNAL_CLIENT_ASYNC_CALL_H_
#define VERBENA_RPC_INTERNAL_CLIENT_ASYNC_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/client_context.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/client_stream.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/queued_operation.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/stream_operation.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class ClientAsyncCall {
 public:
  // What a user's object holds.
  struct Release {
    void operator()(ClientAsyncCall* call) const { call->Drop(); }
  };
  using Ptr = std::unique_ptr<ClientAsyncCall, Release>;

  // Not started. `request` is needed until this returns; none: messages come by
  // Write. `response`: of a call whose server sends one message.
  static Ptr Create(ChannelInterface* channel, CompletionQueue* queue,
                    const RpcMethod& method, ClientContext* context,
                    ConstMessageRef request, MessageRef response);

  // Without an event, and with one.
  void StartCall() { StartNow(nullptr); }
  // None either, where the context's initial metadata are corked.
  void StartCall(void* tag);

  void ReadInitialMetadata(void* tag);
  void Read(MessageRef message, BufferChain* attachment, void* tag);
  void Write(ConstMessageRef message, WriteOptions options, void* tag);
  void WritesDone(void* tag);
  void Finish(Status* status, void* tag) { Finish(response_, status, tag); }
  void Finish(MessageRef response, Status* status, void* tag);

 private:
  friend class QueuedOperation<ClientAsyncCall>;
  using Operation = QueuedOperation<ClientAsyncCall>;

  ClientAsyncCall(std::shared_ptr<ClientStream> stream, CompletionQueue* queue,
                  MessageRef response, const ClientContext* context)
      : stream_(std::move(stream)),
        queue_(*queue),
        response_(response),
        context_(*context) {}
  ~ClientAsyncCall() { stream_->Abandon(); }

  void StartNow(Operation* started);
  // False where the queue is shut down: there will be no event.
  bool Begin(Operation& operation, void* tag);
  void Finalize(Operation* operation, bool* ok);
  void Drop();

  const std::shared_ptr<ClientStream> stream_;
  CompletionQueue& queue_;
  MessageRef response_;
  const ClientContext& context_;        // until the call is over
  std::atomic<int64_t> references_{1};  // the user's object, and operations

  StreamMessage received_;
  MessageRef read_message_;
  BufferChain* read_attachment_ = nullptr;
  Status* status_ = nullptr;
  Operation start_{this};
  Operation metadata_{this};
  Operation read_{this};
  Operation write_{this};
  Operation writes_done_{this};
  Operation finish_{this};
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CLIENT_ASYNC_CALL_H_
