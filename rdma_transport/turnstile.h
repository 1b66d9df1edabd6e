// Who drives a poller: a try-lock that its holder opens for others whenever it
// does something that may take long.
//
// The holder drives. Before it runs a user's handler or sleeps it releases the
// turnstile, and afterwards tries to enter again; where that fails, another
// thread has taken the driving over. Everything the turnstile guards must be
// consistent at a release, and nothing read before it may be trusted after it.
//
//   if (!turnstile.TryEnter()) return;
//   ...
//   turnstile.Release();
//   handler();
//   if (!turnstile.TryEnter()) return;  // somebody else's now
//   ...
//   turnstile.Release();
//
// Of "release, then look for work" on one thread and "leave work, then try to
// enter, or see whether it is open" on another, one sees what the other did:
// both cannot miss each other. Leaving work must be sequentially consistent.
//
// It is a biased lock. A thread that enters again and again, and nobody else,
// becomes its owner: from then on it enters and releases by plain stores to a
// slot of its own, without a locked instruction, which would wait until all
// that the thread has stored has left the CPU. Another thread that wants to
// enter revokes that first, with a fence that interrupts the owner's CPU
// (AsymmetricFence, some us), whether it gets in or not. Each revocation
// doubles how often a thread has to enter before it becomes the owner again.
//
//   S, the state            open <-> held                 without an owner
//                           held  -> biased(slot)         at its release
//                           biased(slot) -> trying(slot)  by another thread
//   which, after a fence,   trying -> held                slot empty
//   looks at the slot:      trying -> converted           the owner is inside
//   the owner, who finds    trying -> held                when it enters
//   S changed:              trying, converted -> open     when it releases
//
// S arbitrates: whoever changes it first from `trying` decides, and the other
// one looks again. A slot belongs to one thread for ever, for that may be about
// to store to it at any time.
#ifndef VERBENA_RDMA_TRANSPORT_TURNSTILE_H_
#define VERBENA_RDMA_TRANSPORT_TURNSTILE_H_

#include <atomic>
#include <cstdint>

#include "rdma_transport/asymmetric_fence.h"

namespace rdma {

class Turnstile {
 public:
  // What is to be done once in a process takes its time, and is better done
  // before anybody enters.
  static void Prepare() {
    (void)AsymmetricFence::Available(AsymmetricFence::Reach::kProcess);
  }

  bool TryEnter() {
    const uint64_t seen = state_.load(std::memory_order_relaxed);
    Slot* const slot = MySlot(seen);
    if (slot == nullptr) [[unlikely]]
      return EnterShared();
    if (slot->IsInside()) [[unlikely]]
      return false;  // by this thread
    slot->Pass();
    AsymmetricFence::Light();
    if (state_.load(std::memory_order_acquire) != seen) [[unlikely]] {
      return EnterRevoked(slot);
    }
    holder_.store(Me(), std::memory_order_relaxed);
    return true;
  }

  // REQUIRES: HeldByMe().
  void Release() {
    holder_.store(nullptr, std::memory_order_relaxed);
    const uint64_t seen = state_.load(std::memory_order_relaxed);
    if (KindOf(seen) == Kind::kHeld) [[unlikely]]
      return ReleaseShared();
    Slot* const slot = &slots_[SlotOf(seen)];
    slot->Pass();
    AsymmetricFence::Light();
    if (state_.load(std::memory_order_relaxed) != seen ||
        KindOf(seen) != Kind::kBiased) [[unlikely]] {
      ReleaseRevoked(slot);
    }
  }

  bool HeldByMe() const {
    return holder_.load(std::memory_order_relaxed) == Me();
  }
  // Whether this thread owns it: nobody else has entered for long.
  bool IsMine() {
    return MySlot(state_.load(std::memory_order_relaxed)) != nullptr;
  }
  // For who would enter, or has left work and relies on the holder otherwise.
  bool IsOpen() const;
  // The same for observers, whom a moment ago will do.
  bool LooksHeld() const;

 private:
  // Where the owner is; the owner's to change.
  struct Slot {
    std::atomic<const void*> owner{nullptr};
    std::atomic<uint64_t> passages{0};  // odd: inside

    void Pass() {
      passages.store(passages.load(std::memory_order_relaxed) + 1,
                     std::memory_order_release);
    }
    bool IsInside() const {
      return (passages.load(std::memory_order_acquire) & 1) != 0;
    }
  };
  // Of threads that owned it once; others never do. Programs' threads are
  // pools, of which now one and now another is alone here.
  static constexpr int kSlots = 64;

  // Of a state: what it is, of which slot, and a number that differs each time.
  enum class Kind : uint64_t { kOpen, kHeld, kBiased, kTrying, kConverted };
  static constexpr uint64_t kOneChange = 8 * kSlots;
  static Kind KindOf(uint64_t state) { return static_cast<Kind>(state & 7); }
  static int SlotOf(uint64_t state) {
    return static_cast<int>(state >> 3) & (kSlots - 1);
  }
  static uint64_t Next(uint64_t state, Kind kind, int slot = 0) {
    return (state / kOneChange + 1) * kOneChange +
           static_cast<uint64_t>(slot) * 8 + static_cast<uint64_t>(kind);
  }

  // A thread's identity: the address of its own byte. A thread that gets one of
  // a thread that ended goes on with its slots.
  static const void* Me() {
    static thread_local char me;
    return &me;
  }

  Slot* MySlot(uint64_t state) {
    if (KindOf(state) != Kind::kBiased) return nullptr;
    Slot* const slot = &slots_[SlotOf(state)];
    return slot->owner.load(std::memory_order_relaxed) == Me() ? slot : nullptr;
  }
  bool Change(uint64_t from, uint64_t to) {
    return state_.compare_exchange_strong(from, to, std::memory_order_seq_cst);
  }
  bool EnterShared();
  bool EnterRevoked(Slot* slot);
  void ReleaseShared();
  void ReleaseRevoked(Slot* slot);
  int ClaimSlot();

  // Since when a thread has been the only one to enter.
  static constexpr uint32_t kEntriesToOwn = 256;
  static constexpr uint32_t kMostEntriesToOwn = 1 << 16;

  std::atomic<uint64_t> state_{0};
  std::atomic<const void*> holder_{nullptr};
  Slot slots_[kSlots];

  // The holder's.
  const void* last_to_enter_ = nullptr;
  uint32_t entries_in_a_row_ = 0;
  uint32_t entries_to_own_ = kEntriesToOwn;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_TURNSTILE_H_
