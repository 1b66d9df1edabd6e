// Which of its QPs a completion queue looks at in a turn.
//
// A turn looks at the hot ones, those that had work lately, and at the next one
// or few of all others. So the busy connections of a process cost a turn
// little, however many idle ones there are beside, and an idle one that wakes
// up is found within a few times as many turns as there are QPs.
//
// Where just one is hot, most turns are a look at that one, by the caller. The
// others have theirs in the first turn without work after some with: what was
// sent has to get to the peer before anything comes back.
//
//   if (PollTarget* only = schedule.only()) {
//     if (only->Ready()) {
//       ... what there is to do
//       schedule.OnlyHadWork();
//       return;  // or goes on with a turn
//     }
//     if (!schedule.OnlyWasIdle()) return;
//   }
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
#include <utility>
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
  // What the target's BecomeIdle said does not hold any more.
  void EndIdleness(PollTarget* target);

  // The target has new work: it becomes hot.
  void Touch(PollTarget* target) {
    if (target == touched_) return;
    touched_ = target;
    if (hot_count_ != targets_.size()) Heat(target);
  }
  // The coming turns look at every target before anything else.
  void LookEverywhere() {
    to_look_at_ = targets_.size();
    unfinished_.clear();
    UpdateOnly();
  }

  // The one target at which the coming turn only has to look; else null.
  PollTarget* only() const { return only_; }
  // After a turn that was a look at only().
  void OnlyHadWork() {
    if (!has_others_) [[likely]]
      return;
    only_had_work_ = true;
    if (++only_turns_ >= kOnlyTurns) LetOthersHaveTurn();
  }
  // True: the turn is to go on with the others.
  bool OnlyWasIdle() {
    if (!has_others_) return false;
    if (++only_turns_ < most_only_turns_ && !only_had_work_) return false;
    LetOthersHaveTurn();
    return true;
  }

  // A turn that only has to look at the hot ones, and finds none of them ready:
  // `*ready` stays null; or just one is hot, and ready: it is to be visited.
  // False: it was not like that, and the turn is still to be taken.
  bool SimpleTurn(PollTarget** ready) {
    NoteOnlyTurns();
    if (to_look_at_ != 0 || !unfinished_.empty() || ColdLookIsDue(turn_ + 1)) {
      return false;
    }
    for (uint32_t i = 0; i < hot_count_; ++i) {
      if (!hot_[i]->ReadyOrAnticipates()) continue;
      if (hot_count_ != 1) return false;
      *ready = hot_[0];
      last_work_[0] = turn_ + 1;
    }
    ++turn_;
    CoolOne();
    UpdateOnly();
    return true;
  }

  // One turn: calls visit(target), which returns a Verdict, for each target
  // that it looks at and that is ready.
  template <typename Visit>
  void Turn(Visit visit) {
    TakeTurn(visit);
    UpdateOnly();
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
  // Beside just one that is hot: at how many at least, whose misses overlap,
  // and after how many turns of that one at most. More of them where the others
  // have just had theirs because it had work: what it sent is being answered.
  static constexpr size_t kColdStepAfterOnly = 8;
  static constexpr uint32_t kOnlyTurns = 8;
  static constexpr uint32_t kOnlyTurnsAfterWork = 24;

  template <typename Visit>
  void TakeTurn(Visit visit) {
    NoteOnlyTurns();
    ++turn_;
    if (to_look_at_ != 0) [[unlikely]] {
      if (LookAtNext(&to_look_at_, visit).stopped) {
        unfinished_.push_back(targets_[next_]);
        return;
      }
    } else if (ColdLookIsDue(turn_)) {
      // Before the hot ones, which may use up every turn.
      cold_look_turn_ = turn_;
      size_t steps = std::exchange(others_are_due_, false)
                         ? std::max(cold_step_, kColdStepAfterOnly)
                         : cold_step_;
      const Look look = LookAtNext(&steps, visit);
      cold_step_ = look.found != 0 ? std::min(cold_step_ * 2, kMaxColdStep)
                                   : std::max(cold_step_ / 2, kMinColdStep);
      if (look.stopped) return;
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
    if (!unfinished_.empty()) [[unlikely]]
      VisitUnfinished(visit);
  }

  bool ColdLookIsDue(uint32_t turn) const {
    return hot_count_ != targets_.size() &&
           (others_are_due_ || hot_count_ == 0 ||
            turn - cold_look_turn_ >= kTurnsPerColdLook);
  }

  struct Look {
    size_t found = 0;  // targets that had work
    bool stopped = false;
  };
  // Looks at the next `*steps` targets in turn, as far as visit lets it.
  template <typename Visit>
  Look LookAtNext(size_t* steps, Visit visit) {
    Look look;
    while (*steps != 0 && !look.stopped) {
      --*steps;
      next_ = next_ + 1 >= targets_.size() ? 0 : next_ + 1;
      if (idle_[next_] && idle_[next_].IsEmpty()) continue;
      PollTarget* const target = targets_[next_];
      if (!target->Ready()) {
        if (!IsHot(target)) idle_[next_] = target->BecomeIdle();
        continue;
      }
      idle_[next_] = {};
      target->StopBeingIdle();
      ++look.found;
      look.stopped = visit(target) == Verdict::kStop;
      Heat(target);
    }
    return look;
  }

  // Those that cut a look everywhere short may have had more. Most are hot
  // since, and have been visited.
  template <typename Visit>
  void VisitUnfinished(Visit visit) {
    while (!unfinished_.empty()) {
      PollTarget* const target = unfinished_.back();
      if (target->Ready() && visit(target) == Verdict::kStop) return;
      unfinished_.pop_back();
    }
  }

  void UpdateOnly() {
    has_others_ = targets_.size() > 1;
    only_ = nullptr;
    if (hot_count_ == targets_.size()) others_are_due_ = false;
    if (to_look_at_ != 0 || !unfinished_.empty() || others_are_due_) return;
    if (targets_.size() == 1) {
      only_ = targets_.front();  // hot or not
      if (only_->is_idle()) EndIdleness(only_);
    } else if (hot_count_ == 1) {
      only_ = hot_.front();
    }
  }
  void LetOthersHaveTurn() {
    others_are_due_ = true;
    only_ = nullptr;
  }
  // What only() had counts as if it had come in turns of all. Before any other
  // target becomes the first of the hot ones.
  void NoteOnlyTurns() {
    if (only_turns_ == 0) return;
    turn_ += std::exchange(only_turns_, 0);
    most_only_turns_ = only_had_work_ ? kOnlyTurnsAfterWork : kOnlyTurns;
    if (std::exchange(only_had_work_, false)) last_work_[0] = turn_;
  }
  bool IsHot(PollTarget* target) const {
    const auto end = hot_.begin() + hot_count_;
    return std::find(hot_.begin(), end, target) != end;
  }
  void Heat(PollTarget* target);
  void Cool(uint32_t at);
  // Looks at one hot target's age.
  void CoolOne() {
    const uint32_t at = turn_ % kMaxHot;
    if (at < hot_count_ && turn_ - last_work_[at] > kHotTurns) Cool(at);
  }

  PollTarget* only_ = nullptr;
  bool has_others_ = false;
  bool only_had_work_ = false;  // since NoteOnlyTurns
  bool others_are_due_ = false;
  uint32_t only_turns_ = 0;  // since then
  uint32_t most_only_turns_ = kOnlyTurns;
  uint32_t turn_ = 0;
  uint32_t cold_look_turn_ = 0;  // the last one with such a look
  uint32_t hot_count_ = 0;
  uint32_t start_ = 0;
  std::array<PollTarget*, kMaxHot> hot_ = {};
  std::array<uint32_t, kMaxHot> last_work_ = {};  // turns
  size_t to_look_at_ = 0;
  size_t next_ = 0;  // the last one that was looked at
  size_t cold_step_ = kMinColdStep;
  std::vector<PollTarget*> unfinished_;
  PollTarget* touched_ = nullptr;     // the last one, while it is hot
  std::vector<PollTarget*> targets_;  // each once
  std::vector<int> uses_;             // how often it was added
  std::vector<IdleRing> idle_;        // of those that are
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_SCHEDULE_H_
