#include "rpc/internal/reactions.h"

#include <bit>

namespace rpc::internal {

constinit thread_local int Reactions::UserScope::depth_ = 0;

void Reactions::Reset() {
  state_.store(0, std::memory_order_relaxed);
  holds_.store(1, std::memory_order_relaxed);
}

void Reactions::Note(uint32_t event) {
  const uint32_t before =
      state_.fetch_or(event | kRunning, std::memory_order_acq_rel);
  if ((before & kRunning) == 0) Begin();
}

void Reactions::Continue() {
  uint32_t expected = kRunning;
  if (!state_.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
    Begin();
  }
}

void Reactions::Begin() {
  if (UserScope::depth_ > 0) {
    PostReactions();
  } else {
    Run();
  }
}

void Reactions::Run() {
  while (true) {
    uint32_t events =
        state_.exchange(kRunning, std::memory_order_acq_rel) & ~kRunning;
    if (events == 0) {
      uint32_t expected = kRunning;
      if (state_.compare_exchange_strong(expected, 0,
                                         std::memory_order_acq_rel)) {
        return;
      }
      continue;
    }
    for (uint32_t rest = events & ~kEnd; rest != 0; rest &= rest - 1) {
      React(static_cast<Event>(uint32_t{1} << std::countr_zero(rest)));
    }
    if (events & kEnd) return OnEnd();
  }
}

}  // namespace rpc::internal
