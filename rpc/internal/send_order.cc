#include "rpc/internal/send_order.h"

#include <utility>

namespace rpc::internal {

void SendOrder::Enter(Step* step) {
  {
    absl::MutexLock lock(&mutex_);
    (first_ == nullptr ? first_ : last_->next_) = step;
    last_ = step;
  }
  Run();
}

void SendOrder::Leave() {
  {
    absl::MutexLock lock(&mutex_);
    occupied_ = false;
  }
  Run();
}

void SendOrder::Run() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(runs_, true)) return;
  }
  while (Step* const next = TakeNext()) next->Act();
}

SendOrder::Step* SendOrder::TakeNext() {
  absl::MutexLock lock(&mutex_);
  Step* const next = occupied_ ? nullptr : first_;
  if (next == nullptr) {
    runs_ = false;
    return nullptr;
  }
  first_ = next->next_;
  occupied_ = true;
  return next;
}

}  // namespace rpc::internal
