#include "rdma_transport/software/engine/completion_queue.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rdma_transport/asymmetric_fence.h"

namespace rdma::soft {
namespace {

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
  ibv_wc* const end = completions + capacity;
  PollTarget* const only = schedule_.only();
  if (only == nullptr || only->small_cq() != this || queued_ != 0 ||
      armed_ != Armed::kNo || attention_.load(std::memory_order_relaxed))
      [[unlikely]] {
    return PollLong(completions, completions, end);
  }
  if (!only->ReadyOrAnticipates()) {
    if (schedule_.OnlyWasIdle()) return PollLong(completions, completions, end);
    OnIdleTurn();
    return 0;
  }
  copy_budget_ = kShortQuantumBytes;
  const PollTarget::Taken taken =
      only->TakeSmall(completions, end, &copy_budget_);
  schedule_.OnlyHadWork();
  if (!taken.all) [[unlikely]]
    return PollLong(completions, taken.next, end);
  if (taken.next == completions) OnIdleTurn();
  return static_cast<int>(taken.next - completions);
}

int CompletionQueue::PollLong(ibv_wc* completions, ibv_wc* next, ibv_wc* end) {
  PollTarget* ready = nullptr;
  if (next == completions && queued_ == 0 &&
      !attention_.load(std::memory_order_relaxed) &&
      schedule_.SimpleTurn(&ready) && ready == nullptr) {
    OnIdleTurn();
    return 0;
  }
  // One that TakeSmall filled has to be more than polled: what else its target
  // has to do would wait for a poll that is not full.
  const bool filled = next == end;
  sink_next_ = next;
  sink_end_ = end;
  polling_ = true;
  copy_budget_ = kCopyQuantumBytes;
  if (ready != nullptr) {
    ready->Progress();
  } else {
    if (queued_ != 0) [[unlikely]]
      DrainQueue();
    if (sink_next_ != sink_end_ || filled) PollTargets();
  }
  polling_ = false;
  const auto count = static_cast<int>(sink_next_ - completions);
  sink_next_ = sink_end_ = nullptr;
  had_work_ = count != 0;
  if (count == 0) OnIdleTurn();
  return count;
}

inline void CompletionQueue::OnIdleTurn() {
  if (++idle_turns_ == kIdleTurnsPerHousekeeping) [[unlikely]]
    Housekeep();
}

int CompletionQueue::Resize(uint32_t capacity) {
  if (capacity < queued_) return EINVAL;
  std::unique_ptr<Entry[]> queue(new Entry[capacity]);
  for (uint32_t i = 0; i < queued_; ++i) {
    queue[i] = queue_[(uint64_t{queue_head_} + i) % capacity_];
  }
  queue_ = std::move(queue);
  queue_head_ = 0;
  capacity_ = capacity;
  cqe = static_cast<int>(capacity);
  return 0;
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
  if (attention_.load(std::memory_order_relaxed)) [[unlikely]]
    AttendTo();
  schedule_.Turn([this](PollTarget* target) {
    const uint64_t budget_bytes = copy_budget_;
    target->Progress();
    if (sink_next_ == sink_end_) return PollSchedule::Verdict::kStop;
    return copy_budget_ == 0 && budget_bytes != 0
               ? PollSchedule::Verdict::kUsedUp
               : PollSchedule::Verdict::kGoOn;
  });
}

void CompletionQueue::SetAttention(PollTarget* target) {
  std::lock_guard lock(attention_mutex_);
  attention_targets_.push_back(target);
  attention_.store(true, std::memory_order_relaxed);
}

void CompletionQueue::AttendTo() {
  std::vector<PollTarget*> targets;
  {
    std::lock_guard lock(attention_mutex_);
    targets.swap(attention_targets_);
    attention_.store(false, std::memory_order_relaxed);
  }
  for (PollTarget* target : targets) target->Progress();
}

void CompletionQueue::Housekeep() {
  idle_turns_ = 0;
  const std::vector<PollTarget*>& targets = schedule_.all();
  if (targets.empty()) return;
  housekeep_next_ =
      housekeep_next_ + 1 >= targets.size() ? 0 : housekeep_next_ + 1;
  targets[housekeep_next_]->ServiceLink();
}

void CompletionQueue::RemoveTarget(PollTarget* target) {
  if (!schedule_.Remove(target)) return;
  DropCompletions(target);
  std::lock_guard lock(attention_mutex_);
  std::erase(attention_targets_, target);
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
  // The consumer polls next, as the verbs ask for, and sees what peers sent
  // before: on whichever connection.
  schedule_.LookEverywhere();
  if (busy()) channel()->Kick();
  return 0;
}

void CompletionQueue::Rearm() {
  arm_number_ = (arm_number_ | kSolicitedOnly) + 1;
  if (arm_number_ == 0) arm_number_ = kSolicitedOnly + 1;
  line_->armed.store(
      arm_number_ | (armed_ == Armed::kSolicited ? kSolicitedOnly : 0),
      std::memory_order_relaxed);
  // Peers either see the new number, or we see what they sent.
  AsymmetricFence::Heavy(AsymmetricFence::Reach::kProcesses);
}

void CompletionQueue::Fire() {
  armed_ = Armed::kNo;
  line_->armed.store(0, std::memory_order_relaxed);
  channel()->Post(this);
}

void CompletionQueue::SetBusy(PollTarget* target, bool busy) {
  busy_count_ += busy ? 1 : -1;
  if (!busy) return;
  Touch(target);
  if (armed()) channel()->Kick();
}

void CompletionQueue::ProgressSome() {
  schedule_.Turn([](PollTarget* target) {
    target->Progress();
    return PollSchedule::Verdict::kGoOn;
  });
}

void CompletionQueue::ProgressAll() {
  for (PollTarget* target : schedule_.all()) {
    if (target->Ready()) target->Progress();
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
