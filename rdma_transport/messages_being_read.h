// Which large messages of peers a poller's connections read, and so whether one
// is worth parsing while it is being read (arriving_message.h).
//
// Where a NIC reads, it is not where several are read at a time. Nobody is idle
// then, READs of the others come before the next chunk's, and their calls wait
// for the one that is parsed. Where the CPU that parses reads, too, several at
// a time are no sooner there than one after the other: so one takes its turn,
// and is parsed while it is being read, when the one before has come.
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_MESSAGES_BEING_READ_H_
#define VERBENA_RDMA_TRANSPORT_MESSAGES_BEING_READ_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace rdma {

class MessagesBeingRead {
 public:
  // Who has a message that waits for its turn.
  class Waiter {
   public:
    // It has come: IsTurnOf.
    virtual void OnTurn() = 0;

   protected:
    ~Waiter() = default;
  };

  void Add() {
    if (++count_ > 1) whole_left_ = kWholeAfterSeveral;
  }
  void Remove() { --count_; }

  // Of the one that was added last. Where there were several at a time, the
  // next ones are likely to meet others.
  bool IsLikelyAlone() {
    if (whole_left_ > 0) {
      --whole_left_;
      return false;
    }
    return count_ == 1;
  }

  // ---- Where they take turns.

  // One is parsed from now on, until RemoveArriving.
  void AddArriving() {
    ++arriving_;
    ++turns_;
  }
  void RemoveArriving() {
    --arriving_;
    TellNext();
  }
  // Of the one that was added last: kNow, kLater (Wait for it), or kNever.
  enum class Turn { kNow, kLater, kNever };
  Turn NextTurn() {
    if (no_turns_left_ > 0) {
      --no_turns_left_;
      return Turn::kNever;
    }
    if (arriving_ > 0 || !waiters_.empty()) return Turn::kLater;
    return count_ == 1 ? Turn::kNow : Turn::kNever;
  }
  // How many there were. While it stays the same, one of them goes on.
  uint64_t turns() const { return turns_; }
  void Wait(Waiter* waiter) { waiters_.push_back(waiter); }
  bool IsTurnOf(const Waiter* waiter) const {
    return arriving_ == 0 && !waiters_.empty() && waiters_.front() == waiter;
  }
  // One of this waiter's waits no more. REQUIRES: where it was its turn, either
  // AddArriving or TellNext follows.
  void StopWaiting(const Waiter* waiter) {
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), waiter));
  }
  // Whether nothing else is being read beside one that does not wait any more.
  bool IsAlone() const { return count_ == waiters_.size() + 1; }
  void TellNext() {
    if (arriving_ == 0 && !waiters_.empty()) waiters_.front()->OnTurn();
  }
  // The turn before takes too long: the next ones do not wait, and each time
  // twice as many, until one had its turn.
  void GiveTurnsUp() {
    no_turns_left_ = no_turns_next_;
    no_turns_next_ = std::min(2 * no_turns_next_, kMostWithoutTurns);
  }
  void NoteTurn() {
    no_turns_next_ = std::max(no_turns_next_ / 2, kFewestWithoutTurns);
  }

 private:
  static constexpr uint32_t kWholeAfterSeveral = 16;
  static constexpr uint32_t kFewestWithoutTurns = 16;
  static constexpr uint32_t kMostWithoutTurns = 4096;

  size_t count_ = 0;
  uint32_t whole_left_ = 0;
  uint32_t arriving_ = 0;
  uint64_t turns_ = 0;
  std::deque<Waiter*> waiters_;
  uint32_t no_turns_left_ = 0;
  uint32_t no_turns_next_ = kFewestWithoutTurns;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_MESSAGES_BEING_READ_H_
