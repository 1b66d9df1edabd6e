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
  // Of more than `taken_in_order` receives the newest is the next one.
  ReceiveQueue(uint32_t depth, uint32_t max_sge,
               uint32_t taken_in_order = UINT32_MAX);

  // A list of receives. 0, EINVAL (more SGEs than allowed) or ENOMEM (full),
  // and then which of them it was.
  int Post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

  // The next receive, or null. Valid until Pop.
  const ReceiveWqe* Front() const { return empty() ? nullptr : Next(); }
  // The same. REQUIRES: !empty().
  const ReceiveWqe* Next() const {
    return Slot(TakesNewest() ? tail_ - 1 : head_);
  }
  // Takes it. REQUIRES: !empty().
  void Pop() { TakesNewest() ? --tail_ : ++head_; }
  void Clear() { head_ = tail_; }
  // Next and Pop in one. REQUIRES: !empty().
  const ReceiveWqe* Take() {
    if (TakesNewest()) [[unlikely]]
      return Slot(--tail_);
    return Slot(head_++);
  }
  // Makes the last Take undone. REQUIRES: nothing was posted since.
  void PutBack() { size() + 1 > taken_in_order_ ? ++tail_ : --head_; }

  // 0: none.
  void set_limit(uint32_t limit) { limit_ = limit; }
  uint32_t limit() const { return limit_; }
  bool IsBelowLimit() const { return limit_ != 0 && size() < limit_; }

  bool empty() const { return head_ == tail_; }
  uint32_t size() const { return tail_ - head_; }
  uint32_t depth() const { return depth_; }
  uint32_t max_sge() const { return max_sge_; }

 private:
  bool TakesNewest() const { return size() > taken_in_order_; }
  ReceiveWqe* Slot(uint32_t index) const {
    return reinterpret_cast<ReceiveWqe*>(slots_.get() +
                                         size_t{index & mask_} * stride_);
  }

  const uint32_t depth_;
  const uint32_t max_sge_;
  const uint32_t taken_in_order_;
  const uint32_t mask_;
  const size_t stride_;  // in units of 16 bytes
  uint32_t head_ = 0;    // counts on; masked where used
  uint32_t tail_ = 0;
  uint32_t limit_ = 0;
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

  // Its receives, for its QPs. Who takes one raises the limit event where that
  // is due.
  ReceiveQueue* queue() { return &queue_; }
  // REQUIRES: queue()->IsBelowLimit().
  void RaiseLimit();
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

  ReceiveQueue queue_;
  std::vector<PollTarget*> waiters_;
  AsyncEvents* const async_events_;
};

inline SharedReceiveQueue* FromVerbs(ibv_srq* srq) {
  return static_cast<SharedReceiveQueue*>(srq);
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_RECEIVE_QUEUE_H_
