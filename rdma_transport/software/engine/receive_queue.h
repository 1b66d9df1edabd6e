// Posted receives, in order: a QP's own receive queue, or the inside of an SRQ.
//
//   if (queue.Post(wr) == ENOMEM) ...          // full
//   if (const ReceiveWqe* wqe = queue.Front()) { ... queue.Pop(); }
//
// A slot is free again once its receive was taken, which is earlier than on
// hardware, where its completion must be polled first.
//
// Thread rule: as the CQs of the QPs that use it.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_RECEIVE_QUEUE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_RECEIVE_QUEUE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "rdma_transport/software/engine/async_events.h"
#include "rdma_transport/software/engine/memory_registry.h"
#include "rdma_transport/software/engine/poll_target.h"

namespace rdma::soft {

// One posted receive, in a slot of 16 * (1 + max_sge) bytes.
struct ReceiveWqe {
  uint64_t wr_id;
  uint32_t sge_count;
  uint32_t unused;

  const ibv_sge* sges() const {
    return reinterpret_cast<const ibv_sge*>(this + 1);
  }
  ibv_sge* sges() { return reinterpret_cast<ibv_sge*>(this + 1); }
};
static_assert(sizeof(ReceiveWqe) == 16 && sizeof(ibv_sge) == 16);

class ReceiveQueue {
 public:
  ReceiveQueue(uint32_t depth, uint32_t max_sge);

  // A list of receives. 0, EINVAL (more SGEs than allowed) or ENOMEM (full), and
  // then which of them it was.
  int Post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

  // The oldest receive, or null. Valid until Pop.
  const ReceiveWqe* Front() const {
    return head_ == tail_ ? nullptr : Slot(head_);
  }
  // REQUIRES: Front() is not null.
  void Pop() { ++head_; }
  // The receive that was posted last. REQUIRES: not empty.
  const ReceiveWqe* Newest() const { return Slot(tail_ - 1); }
  void PopNewest() { --tail_; }
  void Clear() { head_ = tail_; }

  uint32_t size() const { return tail_ - head_; }
  uint32_t depth() const { return depth_; }
  uint32_t max_sge() const { return max_sge_; }

 private:
  ReceiveWqe* Slot(uint32_t index) const {
    return reinterpret_cast<ReceiveWqe*>(slots_.get() +
                                         size_t{index & mask_} * stride_);
  }

  const uint32_t depth_;
  const uint32_t max_sge_;
  const uint32_t mask_;
  const size_t stride_;  // in units of 16 bytes
  uint32_t head_ = 0;    // counts on; masked where used
  uint32_t tail_ = 0;
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::unique_ptr<Unit[]> slots_;
};

// A shared receive queue, with its limit event.
class SharedReceiveQueue final : public ibv_srq {
 public:
  SharedReceiveQueue(ibv_context* context, ProtectionDomain* pd,
                     const ibv_srq_init_attr& init, AsyncEvents* async_events);
  ~SharedReceiveQueue();

  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  // ibv_post_srq_recv(3).
  int Post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr);
  // ibv_modify_srq(3): the limit. EOPNOTSUPP for resizing.
  int Modify(const ibv_srq_attr& attributes, int mask);
  void Query(ibv_srq_attr* attributes) const;

  // The next receive, or null. Valid until Pop.
  const ReceiveWqe* Front() const {
    return TakesNewest() ? queue_.Newest() : queue_.Front();
  }
  // Takes it, and raises the limit event where that is due.
  void Pop() {
    TakesNewest() ? queue_.PopNewest() : queue_.Pop();
    if (limit_ != 0 && queue_.size() < limit_) [[unlikely]]
      RaiseLimit();
  }
  uint32_t max_sge() const { return queue_.max_sge(); }

  // A QP has a packet that waits for a receive: the next Post moves it on.
  void AddWaiter(PollTarget* target) { waiters_.push_back(target); }
  void RemoveWaiter(PollTarget* target);

  int users = 0;  // QPs

 private:
  // Verbs promise no order among the receives of an SRQ. A short queue is taken
  // as it was posted, which is what most devices do; of a long one, such as a
  // thousand connections have, the newest, for its memory is still in a cache:
  // taken in turns, each of tens of megabytes would come from memory.
  static constexpr uint32_t kTakenInOrder = 256;
  bool TakesNewest() const { return queue_.size() > kTakenInOrder; }

  void RaiseLimit();

  ReceiveQueue queue_;
  uint32_t limit_ = 0;  // 0: not armed
  std::vector<PollTarget*> waiters_;
  AsyncEvents* const async_events_;
};

inline SharedReceiveQueue* FromVerbs(ibv_srq* srq) {
  return static_cast<SharedReceiveQueue*>(srq);
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_RECEIVE_QUEUE_H_
