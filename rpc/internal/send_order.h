// Keeps what a call sends in the order in which the application sent it, where
// interceptors may let go of a later thing before an earlier one.
//
//   order.Enter(&write);   // takes the next place
//   ... interceptors ...
//   order.Ready(&write);   // ends in write.Act(), once it is its turn
//
// Thread rule: any thread. Act runs on whichever thread made the last one
// before it ready; one at a time.
#ifndef VERBENA_RPC_INTERNAL_SEND_ORDER_H_
#define VERBENA_RPC_INTERNAL_SEND_ORDER_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rpc::internal {

class SendOrder {
 public:
  class Step {
   public:
    // May destroy the step, but not the SendOrder.
    virtual void Act() = 0;

   protected:
    ~Step() = default;

   private:
    friend class SendOrder;
    Step* next_ = nullptr;
    bool is_ready_ = false;
  };

  void Enter(Step* step);
  void Ready(Step* step);

 private:
  // The first, if its turn has come; null: nobody acts from now on.
  Step* TakeFirst();

  absl::Mutex mutex_;
  Step* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Step* last_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool acts_ ABSL_GUARDED_BY(mutex_) = false;  // some thread, in Ready
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SEND_ORDER_H_
