// Completion channel, CQ, SRQ, and QP as owning types.
//
// Each owns one verbs object. The hot calls are made on get() with plain verbs:
// ibv_poll_cq(cq.get(), ...), ibv_post_send(qp.get(), ...).
//
// Thread rule: see Device (single_threaded_queues).
// REQUIRES: destroyed in the reverse order of creation.
#ifndef VERBENA_RDMA_TRANSPORT_VERBS_QUEUES_H_
#define VERBENA_RDMA_TRANSPORT_VERBS_QUEUES_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/verbs/protection_domain.h"

namespace rdma {

// ibv_create_comp_channel(3): a descriptor that becomes readable when an armed
// CQ gets a completion.
class CompletionChannel {
 public:
  static absl::StatusOr<std::unique_ptr<CompletionChannel>> Create(
      Device* device);
  ~CompletionChannel();

  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  ibv_comp_channel* get() const { return channel_; }
  int fd() const { return channel_->fd; }
  // Takes and acknowledges all waiting events; returns how many there were.
  int DrainEvents();

 private:
  CompletionChannel(Device* device, ibv_comp_channel* channel)
      : device_(device), channel_(channel) {}

  Device* const device_;
  ibv_comp_channel* const channel_;
};

// ibv_create_cq(3).
class CompletionQueue {
 public:
  static absl::StatusOr<std::unique_ptr<CompletionQueue>> Create(
      CompletionChannel* channel, Device* device, int depth);
  ~CompletionQueue();

  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  ibv_cq* get() const { return cq_; }
  // Entries; at least what was asked for.
  int depth() const { return cq_->cqe; }
  // ibv_resize_cq(3).
  absl::Status Resize(int depth);

 private:
  CompletionQueue(Device* device, ibv_cq* cq) : device_(device), cq_(cq) {}

  Device* const device_;
  ibv_cq* const cq_;
};

// ibv_create_srq(3).
class SharedReceiveQueue {
 public:
  static absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> Create(
      ProtectionDomain* pd, uint32_t max_wr, uint32_t max_sge);
  ~SharedReceiveQueue();

  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  ibv_srq* get() const { return srq_; }

 private:
  SharedReceiveQueue(Device* device, ibv_srq* srq)
      : device_(device), srq_(srq) {}

  Device* const device_;
  ibv_srq* const srq_;
};

// An RC QP. ibv_create_qp(3).
class QueuePair {
 public:
  struct Depths {
    uint32_t max_send_wr;
    uint32_t max_send_sge;
    uint32_t max_inline_data;
  };
  static absl::StatusOr<std::unique_ptr<QueuePair>> Create(
      ProtectionDomain* pd, CompletionQueue* cq, SharedReceiveQueue* srq,
      const Depths& depths);
  ~QueuePair();

  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  ibv_qp* get() const { return qp_; }
  uint32_t number() const { return qp_->qp_num; }
  // What the device granted; at least what was asked for.
  const Depths& depths() const { return depths_; }

  // Flushes everything posted: the state becomes ERR. ibv_modify_qp(3).
  absl::Status MoveToError();

 private:
  QueuePair(Device* device, ibv_qp* qp, const Depths& depths)
      : device_(device), qp_(qp), depths_(depths) {}

  Device* const device_;
  ibv_qp* const qp_;
  const Depths depths_;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_VERBS_QUEUES_H_
