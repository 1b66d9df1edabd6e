// Lets interceptors see what a call sends one thing after the other, in the
// order in which the application sent it: the next is begun when the one before
// it has gone through them and on its way.
//
//   order.Enter(&write);   // ends in write.Act(), once it is its turn
//   ... interceptors, the transport ...
//   order.Leave();         // the next may act
//
// Thread rule: any thread. Act runs on a thread in Enter or Leave, one at a
// time; a long row of them does not nest.
#ifndef VERBENA_RPC_INTERNAL_SEND_ORDER_H_
#define VERBENA_RPC_INTERNAL_SEND_ORDER_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rpc::internal {

class SendOrder {
 public:
  class Step {
   public:
    // Ends in Leave, at once or later. May destroy the step, but not the
    // SendOrder.
    virtual void Act() = 0;

   protected:
    ~Step() = default;

   private:
    friend class SendOrder;
    Step* next_ = nullptr;
  };

  void Enter(Step* step);
  void Leave();

 private:
  // Has steps act until there is none whose turn it is.
  void Run();
  // Null: nobody runs from now on.
  Step* TakeNext();

  absl::Mutex mutex_;
  Step* first_ ABSL_GUARDED_BY(mutex_) = nullptr;  // not begun
  Step* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool occupied_ ABSL_GUARDED_BY(mutex_) = false;  // one acts, and has not left
  bool runs_ ABSL_GUARDED_BY(mutex_) = false;      // some thread, in Run
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SEND_ORDER_H_
