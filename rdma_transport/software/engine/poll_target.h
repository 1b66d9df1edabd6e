// What a completion queue polls: a QP, seen from its CQ and completion channel.
//
// Thread rule: as the CQ it belongs to.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_TARGET_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_TARGET_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "rdma_transport/software/engine/link.h"

namespace rdma::soft {

class CompletionQueue;

class PollTarget {
 public:
  // Whether Progress would find something to do. Cheap: for an idle connection
  // one load of one cache line that the peer writes.
  bool Ready() const {
    return needs_service_ ||
           (live_link_ != nullptr && live_link_->HasIncoming());
  }

  // The same for who looks again soon.
  bool ReadyOrAnticipates() const {
    if (needs_service_) return true;
    if (live_link_ == nullptr) return false;
    if (live_link_->HasIncoming()) return true;
    live_link_->AnticipateIncoming();
    return false;
  }

  // Where its CQ sees that a target which is not ready stays so, and touches
  // nothing else of it: each connection's part of that is on a page of its own.
  // Before anything but a packet that comes makes it ready, or takes packets,
  // the target says EndIdleness to the CQ. None: that is not known of it.
  IdleRing BecomeIdle() {
    if (!has_one_cq_ || Ready() || live_link_ == nullptr) return {};
    is_idle_ = true;
    return live_link_->idle_ring();
  }
  void StopBeingIdle() { is_idle_ = false; }
  bool is_idle() const { return is_idle_; }

  // Takes small packets that came, and such as describe one piece of memory
  // within the budget; their completions go straight to [completions, end).
  // Nobody sleeps for them, and no other completions of the target wait.
  // REQUIRES: the entries are of small_cq(), the target not idle.
  struct Taken {
    ibv_wc* next;  // behind the last completion
    bool all;      // that was all that Progress would have done
  };
  virtual Taken TakeSmall(ibv_wc* completions, ibv_wc* end,
                          uint64_t* budget_bytes) = 0;
  // The CQ that may be polled by TakeSmall now, as that is likely to do all
  // that Progress would; else null.
  const CompletionQueue* small_cq() const { return small_cq_; }

  // Does what can be done now, within a budget, and adds completions to CQs.
  virtual void Progress() = 0;
  // Looks at the link's descriptor (wake-ups, announcements, hang-ups), and
  // does what follows.
  virtual void ServiceLink() = 0;
  // A polled completion freed this many slots of the send queue.
  virtual void Retire(uint32_t slots) = 0;

 protected:
  ~PollTarget() = default;

  Link* live_link_ = nullptr;   // while packets are taken from it
  bool needs_service_ = false;  // there is work beside incoming packets
  bool is_idle_ = false;        // the CQ relies on BecomeIdle
  bool has_one_cq_ = false;     // for what it sends and receives
  const CompletionQueue* small_cq_ = nullptr;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_TARGET_H_
