// The states of a QueuePair.
#include <sched.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/engine/qp_state.h"
#include "rdma_transport/software/engine/queue_pair.h"
#include "rdma_transport/software/log.h"

namespace rdma::soft {
namespace {

constexpr unsigned kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

// Time-outs do not exist on this wire; queries answer what rdma_cm(7) sets.
constexpr uint8_t kQueriedTimeout = 14;

}  // namespace

int QueuePair::Modify(const ibv_qp_attr& attributes, int mask) {
  if ((mask & IBV_QP_CUR_STATE) != 0 && attributes.cur_qp_state != state) {
    return EINVAL;
  }
  const ibv_qp_state next =
      (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : state;
  if (const int error = CheckTransition(state, next, mask)) return error;
  if (const int error = CheckAttributeValues(attributes, mask, kMaxReads)) {
    return error;
  }
  CopyAttributes(attributes, mask, &attributes_);
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0 && link_ != nullptr) {
    link_->SetAccess(attributes_.qp_access_flags);
  }
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) {
    responder_.SetMinRnrTimer(attributes_.min_rnr_timer);
  }
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
    requester_.SetMaxReads(attributes_.max_rd_atomic);
  }
  if ((mask & IBV_QP_STATE) == 0) return 0;
  MoveTo(next);
  return 0;
}

void QueuePair::MoveTo(ibv_qp_state next) {
  const ibv_qp_state before = state;
  switch (next) {
    case IBV_QPS_RESET:
      EnterReset();
      return;
    case IBV_QPS_ERR:
      if (before != IBV_QPS_ERR) EnterError(Farewell::kTellPeer);
      return;
    case IBV_QPS_RTS:
      // Brought up by hand there is nobody on the other side.
      if (link_ == nullptr) requester_.SetUnreachable();
      requester_.SetRunning(true);
      break;
    case IBV_QPS_SQD:
      requester_.SetRunning(false);
      drain_pending_ =
          before == IBV_QPS_RTS && attributes_.en_sqd_async_notify != 0;
      break;
    default:
      break;
  }
  state = next;
  UpdateService();
}

void QueuePair::Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) const {
  *attributes = attributes_;
  attributes->qp_state = attributes->cur_qp_state = state;
  attributes->cap = init_.cap;
  attributes->path_mig_state = IBV_MIG_MIGRATED;
  attributes->sq_draining = state == IBV_QPS_SQD && !requester_.drained();
  if (init != nullptr) *init = init_;
}

int QueuePair::Initialize() {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = kAllAccess;
  return Modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                IBV_QP_ACCESS_FLAGS);
}

int QueuePair::Connect(std::shared_ptr<Link> link,
                       const ConnectAttributes& connect) {
  CompletionChannel* const send_channel = context_.send_cq->channel();
  CompletionChannel* const recv_channel = context_.recv_cq->channel();
  const int fd = link->fd();
  if (fd >= 0) {
    if (recv_channel != nullptr && !recv_channel->Watch(fd, this)) {
      return ENOSPC;
    }
    if (send_channel != nullptr && send_channel != recv_channel &&
        !send_channel->Watch(fd, this)) {
      if (recv_channel != nullptr) recv_channel->Unwatch(fd);
      return ENOSPC;
    }
    watched_ = true;
  }
  link_ = std::move(link);
  context_.link = live_link_ = link_.get();
  link_->SetAccess(attributes_.qp_access_flags);
  link_->SetObserver(this);
  environment_.links->Add(link_.get());
  for (const auto& arena : environment_.memory->arenas().OpenToPeers()) {
    link_->Announce(arena->id());
  }

  attributes_.path_mtu = IBV_MTU_4096;
  attributes_.dest_qp_num = connect.peer_qp_num;
  attributes_.max_rd_atomic = connect.max_rd_atomic;
  attributes_.max_dest_rd_atomic = connect.max_dest_rd_atomic;
  attributes_.min_rnr_timer = connect.min_rnr_timer;
  attributes_.timeout = kQueriedTimeout;
  attributes_.retry_cnt = connect.retry_count;
  attributes_.rnr_retry = connect.rnr_retry;
  attributes_.ah_attr.port_num = 1;
  requester_.SetMaxReads(connect.max_rd_atomic);
  responder_.OnConnected();
  responder_.SetRnr(connect.min_rnr_timer, connect.peer_rnr_retry);
  MoveTo(IBV_QPS_RTS);
  // What the peer sent before this is for nobody else to report: it rang for
  // the arming, if at all, when there was no QP to look at.
  if (context_.recv_cq->armed() || context_.send_cq->armed()) Progress();
  return 0;
}

void QueuePair::Disconnect() {
  if (state == IBV_QPS_RESET) return;
  if (state != IBV_QPS_ERR) EnterError(Farewell::kSilent);
  if (link_ != nullptr) link_->HangUp();
  Unwatch();
}

void QueuePair::EnterError(Farewell farewell) {
  state = IBV_QPS_ERR;
  EndIdleness();
  live_link_ = nullptr;
  if (link_ != nullptr) {
    // Before anything is flushed: from here on the caller may reuse the memory
    // of SENDs that the peer has not copied, and what the peer was let in to.
    CloseLink();
    if (!responder_.discarding()) link_->Acknowledge();
    if (farewell == Farewell::kTellPeer && !link_->hung_up()) {
      Packet packet;
      packet.kind = PacketKind::kGone;
      link_->Send(packet, nullptr, 0);
      link_->Wake(/*solicited=*/true);
    }
  }
  SetBusy(&receive_busy_, false);
  helper_.End();
  SetBusy(&help_busy_, false);
  requester_.Flush();
  responder_.Flush();
  if (srq_ != nullptr) {
    environment_.async_events->Raise(IBV_EVENT_QP_LAST_WQE_REACHED,
                                     static_cast<ibv_qp*>(this));
  }
  UpdateService();
}

void QueuePair::EnterReset() {
  if (link_ != nullptr) CloseLink();
  DropLink();
  SetBusy(&receive_busy_, false);
  helper_.End();
  SetBusy(&help_busy_, false);
  requester_.Reset();
  responder_.Reset();
  context_.send_cq->DropCompletions(this);
  context_.recv_cq->DropCompletions(this);
  attributes_ = {};
  drain_pending_ = false;
  state = IBV_QPS_RESET;
  UpdateService();
}

void QueuePair::CloseLink() {
  link_->MarkClosed();
  // A write that finds the link closed does not begin; one that runs under a
  // key lasts microseconds, unless its process is stopped.
  const uint32_t key = link_->PeersWritingKey();
  if (key == 0 || !context_.memory->MayBeWritten(key)) return;
  const int64_t deadline_ns =
      context_.clock->NowNanoseconds() + MemoryRegistry::kRevokeLimitNs;
  while (link_->PeersWritingKey() == key && !link_->IsPeerGone()) {
    if (context_.clock->NowNanoseconds() >= deadline_ns) {
      Log(absl::StrCat("QP ", qp_num, ": the peer's QP ",
                       attributes_.dest_qp_num, " writes to memory of key ",
                       key,
                       " and does not end, as a process that is stopped "
                       "would: what it writes there later is not kept out"));
      return;
    }
    sched_yield();
  }
}

void QueuePair::DropLink() {
  if (link_ == nullptr) return;
  EndIdleness();
  live_link_ = nullptr;
  link_->SetObserver(nullptr);
  link_->HangUp();
  Unwatch();
  environment_.links->Remove(link_.get());
  context_.link = nullptr;
  link_.reset();
}

void QueuePair::Unwatch() {
  if (!std::exchange(watched_, false)) return;
  for (CompletionQueue* cq : {context_.send_cq, context_.recv_cq}) {
    if (cq->channel() != nullptr) cq->channel()->Unwatch(link_->fd());
  }
}

}  // namespace rdma::soft
