// A store and a later load on each of two sides, so that at least one side sees
// the other's store: going to sleep against sending, taking a turnstile against
// passing it. One side does so millions of times a second and pays nothing; the
// other one pays for both, with membarrier(2).
//
//   rare side:   armed.store(1); AsymmetricFence::Heavy(reach); look again
//   common side: message.store(x); AsymmetricFence::Light(); if (armed.load())
//
// Where the kernel or a sandbox does not let a process use membarrier, both
// sides must use Heavy, which is a full fence then: see Available.
//
// Thread rule: thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_ASYMMETRIC_FENCE_H_
#define VERBENA_RDMA_TRANSPORT_ASYMMETRIC_FENCE_H_

#include <atomic>

namespace rdma {

class AsymmetricFence {
 public:
  // Whose threads are the common side.
  enum class Reach {
    kProcess,    // this process's
    kProcesses,  // those of all processes that asked for Available(kProcesses)
  };

  // Whether Heavy of this process reaches those threads, and, with kProcesses,
  // Heavy of others this process's. Registers the process on first use, which
  // takes 10 to 20 ms where it has several threads.
  static bool Available(Reach reach);

  // Ends the process where what was available is so no more (a sandbox that was
  // entered since).
  static void Heavy(Reach reach);
  static void Light() { std::atomic_signal_fence(std::memory_order_seq_cst); }
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_ASYMMETRIC_FENCE_H_
