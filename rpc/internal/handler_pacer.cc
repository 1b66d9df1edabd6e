#include "rpc/internal/handler_pacer.h"

#include <algorithm>

namespace rpc::internal {

void HandlerPacer::RecordInline(Clock::duration took) {
  const bool slow = took > kLong;
  const bool second = last_was_slow_.exchange(slow, std::memory_order_relaxed);
  if (slow) {
    RecordSlowInline(second);
  } else if (!offload() &&
             quick_runs_to_return_.load(std::memory_order_relaxed) >
                 kQuickRunsToReturn) {
    RecordQuickInline();
  }
}

void HandlerPacer::RecordSlowInline(bool second) {
  quick_runs_.store(0, std::memory_order_relaxed);
  if (second) {
    last_was_slow_.store(false, std::memory_order_relaxed);
    offload_.store(true, std::memory_order_relaxed);
  } else {
    // One may be a page fault or a cold cache: look at the next.
    until_sample_.store(0, std::memory_order_relaxed);
  }
}

void HandlerPacer::RecordQuickInline() {
  if (quick_runs_.fetch_add(1, std::memory_order_relaxed) + 1 <
      kQuickRunsToForgive) {
    return;
  }
  quick_runs_.store(0, std::memory_order_relaxed);
  const uint32_t needed = quick_runs_to_return_.load(std::memory_order_relaxed);
  quick_runs_to_return_.store(std::max(needed / 2, kQuickRunsToReturn),
                              std::memory_order_relaxed);
}

void HandlerPacer::RecordOffloaded(Clock::duration took) {
  if (!offload()) return;
  if (took > kLong) {
    quick_runs_.store(0, std::memory_order_relaxed);
    return;
  }
  const uint32_t quick_runs =
      quick_runs_.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint32_t needed = quick_runs_to_return_.load(std::memory_order_relaxed);
  if (quick_runs < needed) return;
  quick_runs_.store(0, std::memory_order_relaxed);
  quick_runs_to_return_.store(std::min(2 * needed, kMaxQuickRunsToReturn),
                              std::memory_order_relaxed);
  offload_.store(false, std::memory_order_relaxed);
}

}  // namespace rpc::internal
