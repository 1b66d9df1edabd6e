#include "rdma_transport/software/engine/receive_queue.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

namespace rdma::soft {

ReceiveQueue::ReceiveQueue(uint32_t depth, uint32_t max_sge,
                           uint32_t taken_in_order)
    : depth_(depth),
      max_sge_(max_sge),
      taken_in_order_(taken_in_order),
      mask_(std::bit_ceil(std::max(depth, 1u)) - 1),
      stride_(1 + max_sge),
      slots_(new Unit[(size_t{mask_} + 1) * stride_]) {}

int ReceiveQueue::Post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  const uint32_t end = head_ + depth_;
  uint32_t tail = tail_;
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    // A negative number is too large as well.
    const auto sge_count = static_cast<uint32_t>(wr->num_sge);
    if (sge_count > max_sge_ || tail == end) [[unlikely]] {
      error = sge_count > max_sge_ ? EINVAL : ENOMEM;
      *bad_wr = wr;
      break;
    }
    ReceiveWqe* const wqe = Slot(tail++);
    wqe->wr_id = wr->wr_id;
    wqe->sge_count = sge_count;
    if (sge_count == 1) [[likely]] {
      wqe->sges()[0] = wr->sg_list[0];
    } else {
      for (uint32_t i = 0; i < sge_count; ++i) wqe->sges()[i] = wr->sg_list[i];
    }
  }
  tail_ = tail;
  return error;
}

SharedReceiveQueue::SharedReceiveQueue(ibv_context* context,
                                       ProtectionDomain* pd,
                                       const ibv_srq_init_attr& init,
                                       AsyncEvents* async_events)
    : ibv_srq{},
      queue_(init.attr.max_wr, init.attr.max_sge, kTakenInOrder),
      async_events_(async_events) {
  this->context = context;
  this->pd = pd;
  srq_context = init.srq_context;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  pd->users.fetch_add(1);
}

SharedReceiveQueue::~SharedReceiveQueue() {
  async_events_->Forget(static_cast<ibv_srq*>(this));
  FromVerbs(pd)->users.fetch_sub(1);
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

int SharedReceiveQueue::Post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  const int error = queue_.Post(wr, bad_wr);
  if (!waiters_.empty()) [[unlikely]] {
    // A copy: those that find one leave the list.
    const std::vector<PollTarget*> waiters = waiters_;
    for (PollTarget* target : waiters) target->Progress();
  }
  return error;
}

int SharedReceiveQueue::Modify(const ibv_srq_attr& attributes, int mask) {
  if ((mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)) != 0) return EINVAL;
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (attributes.srq_limit > queue_.depth()) return EINVAL;
  queue_.set_limit(attributes.srq_limit);
  // Armed below the limit: the event is due at once.
  if (queue_.IsBelowLimit()) RaiseLimit();
  return 0;
}

void SharedReceiveQueue::Query(ibv_srq_attr* attributes) const {
  attributes->max_wr = queue_.depth();
  attributes->max_sge = queue_.max_sge();
  attributes->srq_limit = queue_.limit();
}

void SharedReceiveQueue::RemoveWaiter(PollTarget* target) {
  waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), target),
                 waiters_.end());
}

void SharedReceiveQueue::RaiseLimit() {
  queue_.set_limit(0);
  async_events_->Raise(IBV_EVENT_SRQ_LIMIT_REACHED,
                       static_cast<ibv_srq*>(this));
}

}  // namespace rdma::soft
