#include "rdma_transport/turnstile.h"

#include <algorithm>

namespace rdma {
namespace {

// Where the owner's stores before it are seen, or its loads after it see ours.
void FenceAgainstOwner() {
  AsymmetricFence::Heavy(AsymmetricFence::Reach::kProcess);
}

}  // namespace

bool Turnstile::EnterShared() {
  for (;;) {
    const uint64_t seen = state_.load(std::memory_order_seq_cst);
    uint64_t held_from = seen;
    switch (KindOf(seen)) {
      case Kind::kOpen:
        break;
      case Kind::kBiased: {
        const int slot = SlotOf(seen);
        const uint64_t trying = Next(seen, Kind::kTrying, slot);
        if (!Change(seen, trying)) continue;
        FenceAgainstOwner();
        if (slots_[slot].IsInside()) {
          if (Change(trying, Next(trying, Kind::kConverted, slot))) {
            return false;
          }
          continue;
        }
        held_from = trying;
        break;
      }
      case Kind::kHeld:
      case Kind::kTrying:  // that thread gets in, or the owner is inside
      case Kind::kConverted:
        return false;
    }
    if (!Change(held_from, Next(held_from, Kind::kHeld))) continue;
    holder_.store(Me(), std::memory_order_relaxed);
    entries_in_a_row_ = last_to_enter_ == Me() ? entries_in_a_row_ + 1 : 0;
    last_to_enter_ = Me();
    return true;
  }
}

// The owner has marked its slot and found the state changed.
bool Turnstile::EnterRevoked(Slot* slot) {
  const int index = static_cast<int>(slot - slots_);
  for (;;) {
    const uint64_t seen = state_.load(std::memory_order_seq_cst);
    const bool of_slot = SlotOf(seen) == index;
    if (KindOf(seen) == Kind::kConverted && of_slot) {
      // Who tried saw the mark: this thread is inside.
      holder_.store(Me(), std::memory_order_relaxed);
      return true;
    }
    if (KindOf(seen) == Kind::kTrying && of_slot) {
      if (!Change(seen, Next(seen, Kind::kHeld))) continue;
      slot->Pass();
      holder_.store(Me(), std::memory_order_relaxed);
      return true;
    }
    slot->Pass();
    return EnterShared();
  }
}

void Turnstile::ReleaseShared() {
  const uint64_t held = state_.load(std::memory_order_relaxed);
  uint64_t next = Next(held, Kind::kOpen);
  if (entries_in_a_row_ >= entries_to_own_) {
    entries_in_a_row_ = 0;
    if (const int slot = ClaimSlot(); slot >= 0) {
      next = Next(held, Kind::kBiased, slot);
      entries_to_own_ = std::min(2 * entries_to_own_, kMostEntriesToOwn);
    }
  }
  state_.exchange(next, std::memory_order_seq_cst);
}

// The owner has unmarked its slot and found the state changed: it is open, or
// who tried saw the slot unmarked, and has taken or will take it from here.
void Turnstile::ReleaseRevoked(Slot* slot) {
  const int index = static_cast<int>(slot - slots_);
  for (;;) {
    const uint64_t seen = state_.load(std::memory_order_seq_cst);
    const Kind kind = KindOf(seen);
    if (SlotOf(seen) != index ||
        (kind != Kind::kTrying && kind != Kind::kConverted)) {
      return;
    }
    if (Change(seen, Next(seen, Kind::kOpen))) return;
  }
}

// -1: there are none left, or no fence that reaches an owner.
int Turnstile::ClaimSlot() {
  if (!AsymmetricFence::Available(AsymmetricFence::Reach::kProcess)) return -1;
  for (int i = 0; i < kSlots; ++i) {
    const void* const owner = slots_[i].owner.load(std::memory_order_relaxed);
    if (owner == Me()) return i;
    if (owner == nullptr) {
      slots_[i].owner.store(Me(), std::memory_order_relaxed);
      return i;
    }
  }
  return -1;
}

bool Turnstile::IsOpen() const {
  const uint64_t seen = state_.load(std::memory_order_seq_cst);
  if (KindOf(seen) != Kind::kBiased) return KindOf(seen) == Kind::kOpen;
  const Slot& slot = slots_[SlotOf(seen)];
  if (slot.owner.load(std::memory_order_relaxed) != Me()) FenceAgainstOwner();
  return !slot.IsInside();
}

bool Turnstile::LooksHeld() const {
  const uint64_t seen = state_.load(std::memory_order_relaxed);
  return KindOf(seen) == Kind::kHeld ||
         (KindOf(seen) != Kind::kOpen && slots_[SlotOf(seen)].IsInside());
}

}  // namespace rdma
