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
// Entering and releasing are one sequentially consistent read-modify-write
// each, so that "release, then look for work" on one thread and "leave work,
// then try to enter" on another cannot both miss each other.
#ifndef VERBENA_RDMA_TRANSPORT_TURNSTILE_H_
#define VERBENA_RDMA_TRANSPORT_TURNSTILE_H_

#include <atomic>
#include <cstdint>

namespace rdma {

class Turnstile {
 public:
  bool TryEnter() {
    uint64_t seen = state_.load(std::memory_order_seq_cst);
    do {
      if (IsHeld(seen)) return false;
    } while (!state_.compare_exchange_weak(seen, seen + 1,
                                           std::memory_order_seq_cst));
    holder_.store(Me(), std::memory_order_relaxed);
    return true;
  }

  // REQUIRES: HeldByMe().
  void Release() {
    const uint64_t open = state_.load(std::memory_order_relaxed) + 1;
    holder_.store(nullptr, std::memory_order_relaxed);
    state_.exchange(open, std::memory_order_seq_cst);
  }

  bool HeldByMe() const {
    return holder_.load(std::memory_order_relaxed) == Me();
  }
  bool IsOpen() const {
    return !IsHeld(state_.load(std::memory_order_seq_cst));
  }
  // Changes whenever somebody enters or releases; for observers.
  uint64_t Observe() const { return state_.load(std::memory_order_relaxed); }
  static bool IsHeld(uint64_t observed) { return (observed & 1) != 0; }

 private:
  // A thread's identity: the address of its own byte.
  static const void* Me() {
    static thread_local char me;
    return &me;
  }

  std::atomic<uint64_t> state_{0};  // odd: held
  std::atomic<const void*> holder_{nullptr};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_TURNSTILE_H_
