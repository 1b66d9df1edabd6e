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
    // It has come, perhaps: see TurnHasCome.
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
  void AddArriving() { ++arriving_; }
  void RemoveArriving() {
    if (--arriving_ == 0 && !waiters_.empty()) waiters_.front()->OnTurn();
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
  void Wait(Waiter* waiter) { waiters_.push_back(waiter); }
  bool TurnHasCome() const { return arriving_ == 0; }
  // It waits no more. Whether it is alone now: kNow or kNever.
  Turn StopWaiting(Waiter* waiter) {
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), waiter));
    const bool alone = arriving_ == 0 && count_ == waiters_.size() + 1;
    return alone ? Turn::kNow : Turn::kNever;
  }
  // The turn before takes too long: the next ones do not wait.
  void GiveTurnsUp() { no_turns_left_ = kWholeAfterSeveral; }

 private:
  static constexpr uint32_t kWholeAfterSeveral = 16;

  size_t count_ = 0;
  uint32_t whole_left_ = 0;
  uint32_t arriving_ = 0;
  std::deque<Waiter*> waiters_;
  uint32_t no_turns_left_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_MESSAGES_BEING_READ_H_
