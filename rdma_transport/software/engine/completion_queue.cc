#include "rdma_transport/software/engine/completion_queue.h"

#include <pthread.h>

#include <algorithm>

#include "rdma_transport/software/engine/asymmetric_fence.h"

namespace rdma::soft {
namespace {

// Idle targets looked at in one turn: at least, and, while they turn out not to
// be idle, at most.
constexpr size_t kMinColdStep = 2;
constexpr size_t kMaxColdStep = 64;

// A turn without anything costs some 10 ns, a look at a descriptor 200-300 ns.
constexpr uint32_t kIdleTurnsPerHousekeeping = 4096;

}  // namespace

CompletionQueue::CompletionQueue(ibv_context* context, int capacity,
                                 void* user_context, CompletionChannel* channel,
                                 CqLine* line, uint32_t line_index,
                                 AsyncEvents* async_events)
    : ibv_cq{},
      capacity_(static_cast<uint32_t>(capacity)),
      queue_(new Entry[capacity_]),
      cold_step_(kMinColdStep),
      line_(line),
      line_index_(line_index),
      async_events_(async_events) {
  this->context = context;
  ibv_cq::channel = channel;
  cq_context = user_context;
  handle = line_index;
  cqe = capacity;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  if (channel != nullptr) channel->Add(this);
}

void CompletionQueue::Detach() {
  line_->armed.store(0, std::memory_order_relaxed);
  if (channel() != nullptr) channel()->Remove(this);
}

CompletionQueue::~CompletionQueue() {
  async_events_->Forget(static_cast<ibv_cq*>(this));
  pthread_mutex_lock(&mutex);
  while (comp_events_completed != events_taken_) {
    pthread_cond_wait(&cond, &mutex);
  }
  pthread_mutex_unlock(&mutex);
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

int CompletionQueue::Poll(int capacity, ibv_wc* completions) {
  if (capacity <= 0) return 0;
  sink_next_ = completions;
  sink_end_ = completions + capacity;
  polling_ = true;
  copy_budget_ = kCopyQuantumBytes;
  if (queued_ != 0) [[unlikely]]
    DrainQueue();
  if (sink_next_ != sink_end_) PollTargets();
  polling_ = false;
  const auto count = static_cast<int>(sink_next_ - completions);
  sink_next_ = sink_end_ = nullptr;
  if (count == 0 && ++idle_turns_ == kIdleTurnsPerHousekeeping) {
    Housekeep();
  }
  return count;
}

void CompletionQueue::DrainQueue() {
  while (queued_ != 0 && sink_next_ != sink_end_) {
    const Entry& entry = queue_[queue_head_];
    *sink_next_++ = entry.completion;
    if (entry.slots != 0) entry.target->Retire(entry.slots);
    queue_head_ = queue_head_ + 1 == capacity_ ? 0 : queue_head_ + 1;
    --queued_;
  }
}

void CompletionQueue::PollTargets() {
  if (attention_.load(std::memory_order_relaxed)) [[unlikely]] {
    attention_.store(false, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    for (PollTarget* target : targets_) target->Progress();
  }
  if (to_look_at_ != 0) [[unlikely]] {
    PollEveryTarget();
    return;
  }
  // Start behind the one that used the last turn up: nobody starves.
  const uint32_t start = hot_start_;
  for (uint32_t i = 0; i < hot_count_; ++i) {
    uint32_t at = start + i;
    if (at >= hot_count_) at -= hot_count_;
    if (!hot_[at]->Ready()) continue;
    const uint64_t budget = copy_budget_;
    hot_[at]->Progress();
    const bool full = sink_next_ == sink_end_;
    if (full || (copy_budget_ == 0 && budget != 0)) {
      hot_start_ = at + 1 >= hot_count_ ? 0 : at + 1;
    }
    if (full) return;
  }
  if (targets_.size() > kHotTargets) PollColdTargets();
}

void CompletionQueue::PollEveryTarget() {
  // What the caller's array has no room for is left to its next poll.
  for (; to_look_at_ != 0 && sink_next_ != sink_end_; --to_look_at_) {
    cold_next_ = cold_next_ + 1 >= targets_.size() ? 0 : cold_next_ + 1;
    PollTarget* const target = targets_[cold_next_];
    if (!target->Ready()) continue;
    target->Progress();
    Promote(target);
  }
}

void CompletionQueue::PollColdTargets() {
  bool found = false;
  const size_t steps = std::min(cold_step_, targets_.size());
  for (size_t i = 0; i < steps && sink_next_ != sink_end_; ++i) {
    cold_next_ = cold_next_ + 1 >= targets_.size() ? 0 : cold_next_ + 1;
    PollTarget* const target = targets_[cold_next_];
    if (!target->Ready()) continue;
    found = true;
    target->Progress();
    Promote(target);
  }
  cold_step_ = found ? std::min(cold_step_ * 2, kMaxColdStep)
                     : std::max(cold_step_ / 2, kMinColdStep);
}

void CompletionQueue::Promote(PollTarget* target) {
  const auto end = hot_.begin() + hot_count_;
  if (std::find(hot_.begin(), end, target) != end) return;
  if (hot_count_ < kHotTargets) {
    hot_[hot_count_++] = target;
    return;
  }
  if (hot_[next_eviction_] == touched_) touched_ = nullptr;
  hot_[next_eviction_] = target;
  next_eviction_ = (next_eviction_ + 1) % kHotTargets;
}

void CompletionQueue::Housekeep() {
  idle_turns_ = 0;
  if (targets_.empty()) return;
  housekeep_next_ =
      housekeep_next_ + 1 >= targets_.size() ? 0 : housekeep_next_ + 1;
  targets_[housekeep_next_]->ServiceLink();
}

void CompletionQueue::AddTarget(PollTarget* target) {
  const auto found = std::find(targets_.begin(), targets_.end(), target);
  if (found != targets_.end()) {
    ++target_uses_[found - targets_.begin()];
    return;
  }
  targets_.push_back(target);
  target_uses_.push_back(1);
  Promote(target);
}

void CompletionQueue::RemoveTarget(PollTarget* target) {
  const auto found = std::find(targets_.begin(), targets_.end(), target);
  const auto at = found - targets_.begin();
  if (--target_uses_[at] != 0) return;
  targets_.erase(found);
  if (touched_ == target) touched_ = nullptr;
  to_look_at_ = std::min(to_look_at_, targets_.size());
  target_uses_.erase(target_uses_.begin() + at);
  const auto hot_end = hot_.begin() + hot_count_;
  const auto hot = std::find(hot_.begin(), hot_end, target);
  if (hot != hot_end) {
    *hot = hot_[--hot_count_];
    hot_start_ = 0;
  }
  // Room in the hot set goes to one that has been looked at in turn only.
  if (targets_.size() <= kHotTargets) {
    for (PollTarget* other : targets_) Promote(other);
  }
  DropCompletions(target);
}

void CompletionQueue::DropCompletions(PollTarget* target) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < queued_; ++i) {
    const Entry& entry = queue_[(queue_head_ + i) % capacity_];
    if (entry.target != target)
      queue_[(queue_head_ + kept++) % capacity_] = entry;
  }
  queued_ = kept;
}

void CompletionQueue::Push(const ibv_wc& completion, PollTarget* target,
                           uint32_t slots, bool solicited) {
  // Straight to the caller, unless older ones wait.
  if (sink_next_ != sink_end_ && queued_ == 0) [[likely]] {
    *sink_next_++ = completion;
    if (slots != 0) target->Retire(slots);
  } else {
    Enqueue(completion, target, slots);
  }
  if (armed_ != Armed::kNo) [[unlikely]] {
    if (armed_ == Armed::kAll || solicited ||
        completion.status != IBV_WC_SUCCESS) {
      Fire();
    }
  }
}

void CompletionQueue::Enqueue(const ibv_wc& completion, PollTarget* target,
                              uint32_t slots) {
  if (queued_ == capacity_) {
    // What does not fit is lost, as on every device: the consumer made the
    // queue smaller than what it posted.
    if (!overrun_)
      async_events_->Raise(IBV_EVENT_CQ_ERR, static_cast<ibv_cq*>(this));
    overrun_ = true;
    return;
  }
  queue_[(uint64_t{queue_head_} + queued_) % capacity_] = {completion, target,
                                                           slots};
  ++queued_;
}

int CompletionQueue::RequestNotify(bool solicited_only) {
  if (channel() == nullptr) return 0;
  // The wider request stands.
  if (!solicited_only) {
    armed_ = Armed::kAll;
  } else if (armed_ == Armed::kNo) {
    armed_ = Armed::kSolicited;
  }
  Rearm();
  // Peers either see the new number, or the consumer's next poll, which the
  // verbs ask for, sees what they sent: on whichever connection.
  AsymmetricFence::Heavy();
  to_look_at_ = targets_.size();
  if (busy()) channel()->Kick();
  return 0;
}

void CompletionQueue::Rearm() {
  arm_number_ = (arm_number_ | kSolicitedOnly) + 1;
  if (arm_number_ == 0) arm_number_ = kSolicitedOnly + 1;
  line_->armed.store(
      arm_number_ | (armed_ == Armed::kSolicited ? kSolicitedOnly : 0),
      std::memory_order_relaxed);
}

void CompletionQueue::Fire() {
  armed_ = Armed::kNo;
  line_->armed.store(0, std::memory_order_relaxed);
  channel()->Post(this);
}

void CompletionQueue::AddBusy(int change) {
  busy_targets_ += change;
  if (change > 0 && armed()) channel()->Kick();
}

void CompletionQueue::ProgressAll() {
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (targets_[i]->Ready()) targets_[i]->Progress();
  }
}

void CompletionQueue::CountEvent() {
  pthread_mutex_lock(&mutex);
  ++events_taken_;
  pthread_mutex_unlock(&mutex);
}

void CompletionQueue::AckEvents(unsigned int count) {
  pthread_mutex_lock(&mutex);
  comp_events_completed += count;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&mutex);
}

}  // namespace rdma::soft
