// Which of its QPs a completion queue looks at in a turn.
//
// A turn looks at the hot ones, those that had work lately, and at the next one
// or few of all others. So the busy connections of a process cost a turn
// little, however many idle ones there are beside, and an idle one that wakes
// up is found within as many turns as there are QPs.
//
//   schedule.Turn([&](PollTarget* target) {
//     target->Progress();
//     return PollSchedule::Verdict::kGoOn;
//   });
//
// Thread rule: as the CQ.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_SCHEDULE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_SCHEDULE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rdma_transport/software/engine/poll_target.h"

namespace rdma::soft {

class PollSchedule {
 public:
  enum class Verdict {
    kGoOn,
    kUsedUp,  // it took all that a turn has of something: others begin next
              // time
    kStop,    // the turn is over
  };

  // A target may be added several times, and is removed as often.
  void Add(PollTarget* target);
  // True: it is gone.
  bool Remove(PollTarget* target);
  const std::vector<PollTarget*>& all() const { return targets_; }

  // The target has new work: it becomes hot.
  void Touch(PollTarget* target) {
    if (target == touched_) return;
    touched_ = target;
    if (hot_count_ != targets_.size()) Heat(target);
  }
  // The coming turns look at every target before anything else.
  void LookEverywhere() { to_look_at_ = targets_.size(); }

  // One turn: calls visit(target), which returns a Verdict, for each target
  // that it looks at and that is ready.
  template <typename Visit>
  void Turn(Visit visit) {
    ++turn_;
    if (to_look_at_ != 0) [[unlikely]] {
      LookAtNext(&to_look_at_, visit);
      return;
    }
    // Behind the one that used the last turn up: nobody starves.
    const uint32_t start = start_ < hot_count_ ? start_ : 0;
    for (uint32_t i = 0; i < hot_count_; ++i) {
      const uint32_t at =
          start + i < hot_count_ ? start + i : start + i - hot_count_;
      if (!hot_[at]->Ready()) continue;
      last_work_[at] = turn_;
      const Verdict verdict = visit(hot_[at]);
      if (verdict != Verdict::kGoOn) start_ = at + 1;
      if (verdict == Verdict::kStop) return;
    }
    CoolOne();
    if (hot_count_ == targets_.size()) return;
    if (hot_count_ != 0 && turn_ % kTurnsPerColdLook != 0) return;
    size_t steps = cold_step_;
    const size_t found = LookAtNext(&steps, visit);
    cold_step_ = found != 0 ? std::min(cold_step_ * 2, kMaxColdStep)
                            : std::max(cold_step_ / 2, kMinColdStep);
  }

 private:
  static constexpr size_t kMaxHot = 16;
  // Without work for so many turns, some 50 us, a target is hot no longer.
  static constexpr uint32_t kHotTurns = 4096;
  // Beside hot ones the others are looked at in every so many turns: each look
  // misses the cache.
  static constexpr uint32_t kTurnsPerColdLook = 2;
  // At how many, at least, and, while there is work among them, at most.
  static constexpr size_t kMinColdStep = 1;
  static constexpr size_t kMaxColdStep = 64;

  // Looks at the next `*steps` targets in turn, as far as visit lets it;
  // returns how many had work.
  template <typename Visit>
  size_t LookAtNext(size_t* steps, Visit visit) {
    size_t found = 0;
    for (; *steps != 0; --*steps) {
      next_ = next_ + 1 >= targets_.size() ? 0 : next_ + 1;
      PollTarget* const target = targets_[next_];
      if (!target->Ready()) continue;
      ++found;
      const Verdict verdict = visit(target);
      Heat(target);
      if (verdict == Verdict::kStop) {
        --*steps;
        break;
      }
    }
    return found;
  }

  void Heat(PollTarget* target);
  void Cool(uint32_t at);
  // Looks at one hot target's age.
  void CoolOne() {
    const uint32_t at = turn_ % kMaxHot;
    if (at < hot_count_ && turn_ - last_work_[at] > kHotTurns) Cool(at);
  }

  uint32_t turn_ = 0;
  uint32_t hot_count_ = 0;
  uint32_t start_ = 0;
  std::array<PollTarget*, kMaxHot> hot_ = {};
  std::array<uint32_t, kMaxHot> last_work_ = {};  // turns
  size_t to_look_at_ = 0;
  size_t next_ = 0;
  size_t cold_step_ = kMinColdStep;
  PollTarget* touched_ = nullptr;     // the last one, while it is hot
  std::vector<PollTarget*> targets_;  // each once
  std::vector<int> uses_;             // how often it was added
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_SCHEDULE_H_
