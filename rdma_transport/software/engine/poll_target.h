// What a completion queue polls: a QP, seen from its CQ and completion channel.
//
// Thread rule: as the CQ it belongs to.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_TARGET_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_TARGET_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "rdma_transport/software/engine/link.h"

namespace rdma::soft {

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

  // Takes small packets that came, whose completions go straight to
  // `completions`, `capacity` at most; nobody sleeps for them, and no other
  // completions of the target wait. REQUIRES: TakesSmall().
  struct Taken {
    int64_t count;
    bool all;  // that was all that Progress would have done
  };
  virtual Taken TakeSmall(int64_t capacity, ibv_wc* completions) = 0;
  // Whether TakeSmall is likely to do all that Progress would.
  bool TakesSmall() const { return takes_small_; }

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
  bool takes_small_ = false;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_POLL_TARGET_H_
