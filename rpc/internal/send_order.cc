#include "rpc/internal/send_order.h"

#include <utility>

namespace rpc::internal {

void SendOrder::Enter(Step* step) {
  absl::MutexLock lock(&mutex_);
  (first_ == nullptr ? first_ : last_->next_) = step;
  last_ = step;
}

void SendOrder::Ready(Step* step) {
  {
    absl::MutexLock lock(&mutex_);
    step->is_ready_ = true;
    if (std::exchange(acts_, true)) return;
  }
  while (Step* const first = TakeFirst()) first->Act();
}

SendOrder::Step* SendOrder::TakeFirst() {
  absl::MutexLock lock(&mutex_);
  Step* const first = first_;
  if (first == nullptr || !first->is_ready_) {
    acts_ = false;
    return nullptr;
  }
  first_ = first->next_;
  return first;
}

}  // namespace rpc::internal
