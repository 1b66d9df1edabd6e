// A completion queue. Polling it is what moves its QPs on: packets are taken
// from their links, work requests advance, and the completions go straight into
// the caller's array; only what does not fit there is queued.
//
// Which QPs to look at: those with recent traffic each turn, the others in
// turn, a few at a time, so that a thousand idle connections cost a busy one
// next to nothing.
//
// Events, ibv_req_notify_cq(3): an armed queue's next completion makes one
// event on its channel and disarms it. What arrived before the arming makes
// none.
//
// Thread rule: one thread at a time, but for SetAttention and the Ack
// functions.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_COMPLETION_QUEUE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_COMPLETION_QUEUE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "rdma_transport/software/engine/async_events.h"
#include "rdma_transport/software/engine/completion_channel.h"
#include "rdma_transport/software/engine/device_segment.h"
#include "rdma_transport/software/engine/poll_schedule.h"
#include "rdma_transport/software/engine/poll_target.h"

namespace rdma::soft {

// How much is copied in one turn for READs, WRITEs and long SENDs, so that
// short messages of the same thread do not wait for long: some 15 us.
inline constexpr uint64_t kCopyQuantumBytes = 256 << 10;
// Before that, by the short way: who has more to copy goes on by the long one,
// on which others are looked at as well.
inline constexpr uint64_t kShortQuantumBytes = 64 << 10;

class CompletionQueue final : public ibv_cq {
 public:
  // `line` is the queue's own, zeroed, number `line_index`.
  CompletionQueue(ibv_context* context, int capacity, void* user_context,
                  CompletionChannel* channel, CqLine* line, uint32_t line_index,
                  AsyncEvents* async_events);
  // Waits for the acknowledgement of the events that were taken.
  // REQUIRES: Detach was called.
  ~CompletionQueue();

  // Leaves its channel, with its events that nobody took.
  void Detach();

  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // ibv_poll_cq(3).
  int Poll(int capacity, ibv_wc* completions);
  // ibv_resize_cq(3). EINVAL: less than there is in it.
  int Resize(uint32_t capacity);
  // ibv_req_notify_cq(3).
  int RequestNotify(bool solicited_only);

  // --- For QPs ---

  // A QP may be added several times (send and receive queue), and is removed as
  // often.
  void AddTarget(PollTarget* target) { schedule_.Add(target); }
  // Takes the target's completions with it.
  void RemoveTarget(PollTarget* target);
  // Drops the target's queued completions (a QP that goes to RESET).
  void DropCompletions(PollTarget* target);
  bool has_targets() const { return !schedule_.all().empty(); }
  // The target is not what its BecomeIdle said any more.
  void EndIdleness(PollTarget* target) { schedule_.EndIdleness(target); }
  // The target has new work.
  void Touch(PollTarget* target) { schedule_.Touch(target); }

  // Adds a completion. Polling it frees `slots` of the target's send queue.
  // Without room for it the queue is in error: IBV_EVENT_CQ_ERR.
  void Push(const ibv_wc& completion, PollTarget* target, uint32_t slots,
            bool solicited);
  // Within Poll, the caller's next entry, where a completion may go straight to
  // it and nobody sleeps for it; else null. Pushed takes what was put there.
  ibv_wc* DirectEntry() const {
    return queued_ == 0 && armed_ == Armed::kNo && sink_next_ != sink_end_
               ? sink_next_
               : nullptr;
  }
  // How many there are from DirectEntry on.
  int64_t direct_room() const { return sink_end_ - sink_next_; }
  void Pushed(int64_t count = 1) { sink_next_ += count; }
  // Whether a completion may be taken from a link now: into the caller's array
  // while polling, else into the queue.
  bool HasRoom() const {
    return polling_ ? sink_next_ != sink_end_ : queued_ < capacity_;
  }

  // Within Poll: what its targets may still copy in this turn.
  bool polling() const { return polling_; }
  uint64_t* copy_budget() { return &copy_budget_; }
  // Whether there was something in the last poll, as far as more than small
  // packets was looked for.
  bool had_work() const { return had_work_; }

  // Whether a target has work that no peer will ring for (see
  // CompletionChannel::Kick) changed to this; some other work of the same
  // target may be counted beside.
  void SetBusy(PollTarget* target, bool busy);
  bool busy() const { return busy_count_ != 0; }
  // The next poll makes the target progress: its peer hung up. Thread-safe.
  void SetAttention(PollTarget* target);

  uint32_t line_index() const { return line_index_; }
  CompletionChannel* channel() const { return FromVerbs(ibv_cq::channel); }

  // --- For the channel ---

  bool armed() const { return armed_ != Armed::kNo; }
  // Tells peers a new number. What they sent before they could see it, without
  // ringing, is there to be seen on return.
  void Rearm();
  // One turn without a caller's array.
  void ProgressSome();
  void ProgressAll();
  // An event was taken; AckEvents follows.
  void CountEvent();
  // Thread-safe.
  void AckEvents(unsigned int count);

 private:
  enum class Armed : uint8_t { kNo, kSolicited, kAll };
  struct Entry {
    ibv_wc completion;
    PollTarget* target;
    uint32_t slots;
  };

  // Poll, of whose array [completions, next) is filled already.
  int PollLong(ibv_wc* completions, ibv_wc* next, ibv_wc* end);
  void DrainQueue();
  void PollTargets();
  void AttendTo();
  void Enqueue(const ibv_wc& completion, PollTarget* target, uint32_t slots);
  void Fire();
  void OnIdleTurn();
  // Once in a while, where nothing happens: a look at one link's descriptor.
  void Housekeep();

  // What every turn touches.
  ibv_wc* sink_next_ = nullptr;
  ibv_wc* sink_end_ = nullptr;
  bool polling_ = false;
  bool had_work_ = false;
  Armed armed_ = Armed::kNo;
  bool overrun_ = false;
  std::atomic<bool> attention_{false};  // attention_targets_ is not empty
  uint64_t copy_budget_ = 0;
  uint32_t queued_ = 0;
  uint32_t idle_turns_ = 0;
  PollSchedule schedule_;

  uint32_t capacity_;
  uint32_t queue_head_ = 0;
  std::unique_ptr<Entry[]> queue_;  // of capacity_ entries

  size_t housekeep_next_ = 0;

  std::mutex attention_mutex_;
  std::vector<PollTarget*> attention_targets_;  // guarded by attention_mutex_

  CqLine* const line_;
  const uint32_t line_index_;
  uint32_t arm_number_ = 0;
  int busy_count_ = 0;
  AsyncEvents* const async_events_;
  uint32_t events_taken_ = 0;  // guarded by ibv_cq::mutex
};

inline CompletionQueue* FromVerbs(ibv_cq* cq) {
  return static_cast<CompletionQueue*>(cq);
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_COMPLETION_QUEUE_H_
