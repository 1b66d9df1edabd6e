// A store and a later load on each of two sides, so that at least one side sees
// the other's store: going to sleep against sending. The side that sends runs
// millions of times a second and pays nothing; the side that is about to sleep
// pays for both, with membarrier(2).
//
//   sleeper: armed.store(1); AsymmetricFence::Heavy(); look for messages again
//   sender:  message.store(x); AsymmetricFence::Light(); if (armed.load()) ...
//
// Where the kernel or a sandbox does not let a process use membarrier, both
// sides must use Heavy, which is a full fence then: the two processes tell each
// other (Available).
//
// Thread rule: thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ASYMMETRIC_FENCE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ASYMMETRIC_FENCE_H_

#include <atomic>

namespace rdma::soft {

class AsymmetricFence {
 public:
  // Whether Heavy of any process reaches the threads of this one, and Heavy of
  // this one reaches others. Registers the process on first use.
  static bool Available();

  static void Heavy();
  static void Light() { std::atomic_signal_fence(std::memory_order_seq_cst); }
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ASYMMETRIC_FENCE_H_
