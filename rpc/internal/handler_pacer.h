// Learns whether a method's handlers are quick, and so where to run them.
//
// A quick handler runs best on the thread that received its call: no hand-over,
// no context switch. A slow one there would keep the thread from other calls
// until another takes the polling over. So each method starts inline; when two
// handlers that were timed in a row took long, its calls go to the executor;
// after a number of quick ones there it returns, and each relapse doubles that
// number. Being quick inline for long halves it again: what a busy machine did
// to a method in days does not add up.
//
// Inline, one call in kSampleEvery is timed, for reading the clock twice costs
// as much as a small handler; after a slow one, the next is timed too.
//
// Thread rule: any thread. Counts are approximate where threads race.
#ifndef VERBENA_RPC_INTERNAL_HANDLER_PACER_H_
#define VERBENA_RPC_INTERNAL_HANDLER_PACER_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace rpc::internal {

class HandlerPacer {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Clock::duration kLong = std::chrono::microseconds(100);
  static constexpr uint32_t kSampleEvery = 16;
  static constexpr uint32_t kQuickRunsToReturn = 64;
  static constexpr uint32_t kMaxQuickRunsToReturn = 4096;
  // Inline, timed and in a row, until the number is halved.
  static constexpr uint32_t kQuickRunsToForgive = 64;

  // Whether the next call goes to the executor.
  bool offload() const { return offload_.load(std::memory_order_relaxed); }

  // Inline runs say when they begin and end. A call of the same lane
  // (ServerSink::OnMethod), which has a pacer of its own, that comes while one
  // is going on was polled by another thread, which took over from that
  // handler: it blocks, and what comes meanwhile goes to the executor. Else
  // handlers that block would use up, one by one, the threads that poll.
  bool IsInlineRunning() const {
    return inline_running_.load(std::memory_order_relaxed);
  }
  void BeginInline() { inline_running_.store(true, std::memory_order_relaxed); }
  void EndInline() { inline_running_.store(false, std::memory_order_relaxed); }

  // Inline: whether to time this call.
  bool ShouldTime() {
    const uint32_t count = until_sample_.load(std::memory_order_relaxed);
    if (count > 0) [[likely]] {
      until_sample_.store(count - 1, std::memory_order_relaxed);
      return false;
    }
    until_sample_.store(kSampleEvery - 1, std::memory_order_relaxed);
    return true;
  }

  // How long a timed one kept its thread. What it takes to post a response does
  // not belong to that: no thread of the executor's would make it shorter.
  void RecordInline(Clock::duration took);
  // Counts while calls go there, not what is left when they no longer do, nor
  // what went there because of IsInlineRunning.
  void RecordOffloaded(Clock::duration took);

 private:
  void RecordSlowInline(bool second);
  void RecordQuickInline();

  std::atomic<bool> offload_{false};
  std::atomic<bool> inline_running_{false};
  std::atomic<bool> last_was_slow_{false};
  std::atomic<uint32_t> until_sample_{0};
  std::atomic<uint32_t> quick_runs_{0};  // in a row: timed ones, if inline
  std::atomic<uint32_t> quick_runs_to_return_{kQuickRunsToReturn};
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_HANDLER_PACER_H_
