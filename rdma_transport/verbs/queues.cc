#include "rdma_transport/verbs/queues.h"

#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {

absl::StatusOr<std::unique_ptr<CompletionChannel>> CompletionChannel::Create(
    Device* device) {
  ibv_comp_channel* const channel = device->CreateCompChannel();
  if (channel == nullptr) return VerbsError("ibv_create_comp_channel", errno);
  return absl::WrapUnique(new CompletionChannel(device, channel));
}

CompletionChannel::~CompletionChannel() {
  LogIfFailed("ibv_destroy_comp_channel",
              device_->DestroyCompChannel(channel_));
}

int CompletionChannel::DrainEvents() {
  int count = 0;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (device_->GetCqEvent(channel_, &cq, &context) == 0) {
    device_->AckCqEvents(cq, 1);
    ++count;
  }
  return count;
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> CompletionQueue::Create(
    CompletionChannel* channel, Device* device, int depth) {
  ibv_cq* const cq = device->CreateCq(
      depth, nullptr, channel == nullptr ? nullptr : channel->get(), 0);
  if (cq == nullptr) {
    return VerbsError("ibv_create_cq", errno, absl::StrCat("depth ", depth));
  }
  return absl::WrapUnique(new CompletionQueue(device, cq));
}

absl::Status CompletionQueue::Resize(int depth) {
  const int error = device_->ResizeCq(cq_, depth);
  if (error != 0) {
    return VerbsError("ibv_resize_cq", error, absl::StrCat("depth ", depth));
  }
  return absl::OkStatus();
}

CompletionQueue::~CompletionQueue() {
  LogIfFailed("ibv_destroy_cq", device_->DestroyCq(cq_));
}

absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> SharedReceiveQueue::Create(
    ProtectionDomain* pd, uint32_t max_wr, uint32_t max_sge) {
  ibv_srq_init_attr init = {};
  init.attr.max_wr = max_wr;
  init.attr.max_sge = max_sge;
  ibv_srq* const srq = pd->device()->CreateSrq(pd->get(), &init);
  if (srq == nullptr) {
    return VerbsError("ibv_create_srq", errno, absl::StrCat("depth ", max_wr));
  }
  return absl::WrapUnique(new SharedReceiveQueue(pd->device(), srq));
}

SharedReceiveQueue::~SharedReceiveQueue() {
  LogIfFailed("ibv_destroy_srq", device_->DestroySrq(srq_));
}

absl::StatusOr<std::unique_ptr<QueuePair>> QueuePair::Create(
    ProtectionDomain* pd, CompletionQueue* cq, SharedReceiveQueue* srq,
    const Depths& depths) {
  ibv_qp_init_attr init = {};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = cq->get();
  init.recv_cq = cq->get();
  init.srq = srq->get();
  init.cap.max_send_wr = depths.max_send_wr;
  init.cap.max_send_sge = depths.max_send_sge;
  init.cap.max_inline_data = depths.max_inline_data;
  init.sq_sig_all = 0;
  ibv_qp* const qp = pd->device()->CreateQp(pd->get(), &init);
  if (qp == nullptr) {
    return VerbsError("ibv_create_qp", errno,
                      absl::StrCat("max_send_wr ", depths.max_send_wr));
  }
  // ibv_create_qp writes back what it granted.
  return absl::WrapUnique(
      new QueuePair(pd->device(), qp,
                    Depths{init.cap.max_send_wr, init.cap.max_send_sge,
                           init.cap.max_inline_data}));
}

QueuePair::~QueuePair() {
  LogIfFailed("ibv_destroy_qp", device_->DestroyQp(qp_));
}

absl::Status QueuePair::MoveToError() {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  // From RESET there is no way to ERR (ibv_modify_qp(3)), and nothing to flush.
  if (device_->QueryQp(qp_, &attr, IBV_QP_STATE, &init) == 0 &&
      attr.qp_state == IBV_QPS_RESET) {
    return absl::OkStatus();
  }
  attr = {};
  attr.qp_state = IBV_QPS_ERR;
  const int error = device_->ModifyQp(qp_, &attr, IBV_QP_STATE);
  if (error != 0) return VerbsError("ibv_modify_qp to ERR", error);
  return absl::OkStatus();
}

}  // namespace rdma
