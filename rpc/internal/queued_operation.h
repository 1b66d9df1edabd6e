// An operation whose end is an event of a completion queue.
//
// Thread rule: begun by one thread, completed by any, finalized by the one that
// takes the event; one after the other.
#ifndef VERBENA_RPC_INTERNAL_QUEUED_OPERATION_H_
#define VERBENA_RPC_INTERNAL_QUEUED_OPERATION_H_

#include "rpc/channel_interface.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/stream_operation.h"

namespace rpc::internal {

// `Owner` has
//   void Finalize(QueuedOperation<Owner>* operation, bool* ok);
// which does what is left to do and may destroy both.
template <class Owner>
class QueuedOperation final : public StreamOperation,
                              public CompletionQueueTag {
 public:
  explicit QueuedOperation(Owner* owner) : owner_(*owner) {}

  // False: the queue is shut down, nothing may be begun.
  bool Begin(CompletionQueue* queue, void* tag,
             ChannelInterface* channel = nullptr) {
    if (!queue->Begin(channel)) return false;
    queue_ = queue;
    tag_ = tag;
    return true;
  }
  bool begun() const { return queue_ != nullptr; }

  void Complete(bool ok) override { queue_->Push(this, ok); }

  bool FinalizeResult(void** tag, bool* ok) override {
    *tag = tag_;
    owner_.Finalize(this, ok);
    return true;
  }

 private:
  Owner& owner_;
  CompletionQueue* queue_ = nullptr;
  void* tag_ = nullptr;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_QUEUED_OPERATION_H_
