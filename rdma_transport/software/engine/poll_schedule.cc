#include "rdma_transport/software/engine/poll_schedule.h"

namespace rdma::soft {

void PollSchedule::Add(PollTarget* target) {
  const auto found = std::find(targets_.begin(), targets_.end(), target);
  if (found != targets_.end()) {
    ++uses_[found - targets_.begin()];
    return;
  }
  targets_.push_back(target);
  uses_.push_back(1);
  idle_.emplace_back();
  Heat(target);
}

bool PollSchedule::Remove(PollTarget* target) {
  const auto found = std::find(targets_.begin(), targets_.end(), target);
  const auto at = found - targets_.begin();
  if (--uses_[at] != 0) return false;
  NoteOnlyTurns();
  targets_.erase(found);
  uses_.erase(uses_.begin() + at);
  idle_.erase(idle_.begin() + at);
  // Those behind it moved up. Before the first one is where the look wraps.
  if (static_cast<size_t>(at) <= next_) --next_;
  to_look_at_ = std::min(to_look_at_, targets_.size());
  std::erase(unfinished_, target);
  if (touched_ == target) touched_ = nullptr;
  for (uint32_t i = 0; i < hot_count_; ++i) {
    if (hot_[i] == target) Cool(i);
  }
  UpdateOnly();
  return true;
}

void PollSchedule::EndIdleness(PollTarget* target) {
  target->StopBeingIdle();
  const auto found = std::find(targets_.begin(), targets_.end(), target);
  if (found != targets_.end()) idle_[found - targets_.begin()] = {};
}

void PollSchedule::Heat(PollTarget* target) {
  NoteOnlyTurns();
  const auto end = hot_.begin() + hot_count_;
  auto place = std::find(hot_.begin(), end, target);
  if (place == end) {
    if (hot_count_ < kMaxHot) {
      ++hot_count_;
    } else {
      // In place of the one that has been without work for longest.
      const auto oldest = std::min_element(
          last_work_.begin(), last_work_.end(), [this](uint32_t a, uint32_t b) {
            return static_cast<int32_t>(a - turn_) <
                   static_cast<int32_t>(b - turn_);
          });
      place = hot_.begin() + (oldest - last_work_.begin());
      if (*place == touched_) touched_ = nullptr;
    }
    *place = target;
    if (target->is_idle()) EndIdleness(target);
  }
  last_work_[place - hot_.begin()] = turn_;
  UpdateOnly();
}

void PollSchedule::Cool(uint32_t at) {
  if (hot_[at] == touched_) touched_ = nullptr;
  --hot_count_;
  hot_[at] = hot_[hot_count_];
  last_work_[at] = last_work_[hot_count_];
}

}  // namespace rdma::soft
