#include "rdma_transport/timer_wheel.h"

#include <algorithm>

namespace rdma {

void Timer::TakeOff() {
  if (wheel_ == nullptr) return;  // a list's head
  next_->previous_ = previous_;
  previous_->next_ = next_;
  next_ = previous_ = nullptr;
  --wheel_->count_;
}

TimerWheel::TimerWheel(int64_t now_ns)
    : tick_(static_cast<uint64_t>(now_ns) / kTickNs) {
  for (auto& level : slots_) {
    for (Head& head : level) head.next_ = head.previous_ = &head;
  }
}

void TimerWheel::Schedule(Timer* timer, int64_t time_ns) {
  timer->Unlink();
  timer->wheel_ = this;
  // Rounded up: never early.
  const uint64_t tick =
      (static_cast<uint64_t>(std::max<int64_t>(time_ns, 0)) + kTickNs - 1) /
      kTickNs;
  timer->expiry_tick_ = std::max(tick, tick_ + 1);
  Insert(timer);
  ++count_;
}

void TimerWheel::Insert(Timer* timer) {
  // A timer lies on the level of the highest digit (base kSlots) in which its
  // tick differs from now, in the slot of that digit: the wheel reaches that
  // slot just when the lower digits begin to matter.
  const uint64_t differs = timer->expiry_tick_ ^ tick_;
  int level = 0;
  while (level < kLevels - 1 && (differs >> ((level + 1) * kSlotBits)) != 0) {
    ++level;
  }
  // Beyond the top level's span a timer waits in the slot farthest from now and
  // is placed again when the wheel gets there.
  const uint64_t span_ticks = uint64_t{1} << (kLevels * kSlotBits);
  const uint64_t tick = std::min(timer->expiry_tick_, tick_ + span_ticks - 1);
  const size_t slot = (tick >> (level * kSlotBits)) & (kSlots - 1);
  InsertInto(slots_[level][slot], timer);
}

void TimerWheel::InsertInto(Head& head, Timer* timer) {
  timer->previous_ = head.previous_;
  timer->next_ = &head;
  head.previous_->next_ = timer;
  head.previous_ = timer;
}

void TimerWheel::Cascade(int level) {
  if (level >= kLevels) return;
  const size_t slot = (tick_ >> (level * kSlotBits)) & (kSlots - 1);
  if (slot == 0) Cascade(level + 1);
  Head& head = slots_[level][slot];
  Timer* timer = head.next_;
  head.next_ = head.previous_ = &head;
  while (timer != &head) {
    Timer* const next = timer->next_;
    Insert(timer);
    timer = next;
  }
}

void TimerWheel::FireSlot(Head& head) {
  // One at a time: a callback may cancel its neighbours.
  while (head.next_ != &head) {
    Timer* const timer = head.next_;
    timer->Unlink();
    timer->OnTimer();
  }
}

void TimerWheel::Advance(int64_t now_ns) {
  const uint64_t now_tick = static_cast<uint64_t>(now_ns) / kTickNs;
  while (tick_ < now_tick) {
    if (count_ == 0) {
      tick_ = now_tick;
      return;
    }
    ++tick_;
    const size_t slot = tick_ & (kSlots - 1);
    if (slot == 0) Cascade(1);
    FireSlot(slots_[0][slot]);
  }
}

int64_t TimerWheel::NextAdvanceNs() const {
  if (count_ == 0) return kNever;
  // All that is on a level lies before all that is on the next one.
  for (int level = 0; level < kLevels; ++level) {
    const int shift = level * kSlotBits;
    const uint64_t digit = (tick_ >> shift) & (kSlots - 1);
    for (uint64_t ahead = 1; ahead < kSlots; ++ahead) {
      if (digit + ahead == kSlots && level < kLevels - 1) break;
      const Head& head = slots_[level][(digit + ahead) & (kSlots - 1)];
      if (head.next_ == &head) continue;
      return static_cast<int64_t>(((tick_ >> shift) + ahead) << shift) *
             kTickNs;
    }
  }
  return static_cast<int64_t>(tick_ + 1) * kTickNs;
}

}  // namespace rdma
