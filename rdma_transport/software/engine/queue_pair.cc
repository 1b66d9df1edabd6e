#include "rdma_transport/software/engine/queue_pair.h"

#include <pthread.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/engine/asymmetric_fence.h"
#include "rdma_transport/software/engine/qp_state.h"
#include "rdma_transport/software/log.h"

namespace rdma::soft {
namespace {

constexpr unsigned kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

// Time-outs do not exist on this wire; queries answer what rdma_cm(7) sets.
constexpr uint8_t kQueriedTimeout = 14;

// What a peer may make a SEND of ours fail with.
ibv_wc_status CheckRefusal(uint32_t status) {
  switch (status) {
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return static_cast<ibv_wc_status>(status);
    default:
      return IBV_WC_REM_OP_ERR;
  }
}

}  // namespace

QueuePair::QueuePair(const Environment& environment, uint32_t number,
                     ProtectionDomain* protection_domain,
                     const ibv_qp_init_attr& init)
    : ibv_qp{},
      context_{environment.memory,
               environment.clock,
               protection_domain,
               FromVerbs(init.send_cq),
               FromVerbs(init.recv_cq),
               this,
               number,
               nullptr},
      environment_(environment),
      init_(init),
      srq_(init.srq == nullptr ? nullptr : FromVerbs(init.srq)),
      requester_(&context_, init.cap, init.sq_sig_all != 0),
      responder_(&context_, srq_, init.cap) {
  context = environment.context;
  qp_context = init.qp_context;
  pd = protection_domain;
  send_cq = init.send_cq;
  recv_cq = init.recv_cq;
  srq = init.srq;
  handle = qp_num = number;
  state = IBV_QPS_RESET;
  qp_type = init.qp_type;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  context_.send_cq->AddTarget(this);
  context_.recv_cq->AddTarget(this);
  protection_domain->users.fetch_add(1);
  if (srq_ != nullptr) ++srq_->users;
}

QueuePair::~QueuePair() {
  environment_.async_events->Forget(static_cast<ibv_qp*>(this));
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

void QueuePair::Detach() {
  EnterReset();
  context_.send_cq->RemoveTarget(this);
  context_.recv_cq->RemoveTarget(this);
  if (srq_ != nullptr) --srq_->users;
  context_.pd->users.fetch_sub(1);
}

// --- State -------------------------------------------------------------------

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
  responder_.SetRnr(connect.min_rnr_timer, connect.peer_rnr_retry);
  MoveTo(IBV_QPS_RTS);
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
  live_link_ = nullptr;
  if (link_ != nullptr) {
    // Before anything is flushed: from here on the caller may reuse the memory
    // of SENDs that the peer has not copied.
    link_->MarkClosed();
    if (!responder_.discarding()) link_->Acknowledge();
    if (farewell == Farewell::kTellPeer && !link_->hung_up()) {
      Packet packet;
      packet.kind = PacketKind::kGone;
      link_->Send(packet, nullptr, 0);
      link_->Wake(/*solicited=*/true);
    }
  }
  requester_.Flush();
  responder_.Flush();
  if (srq_ != nullptr) {
    environment_.async_events->Raise(IBV_EVENT_QP_LAST_WQE_REACHED,
                                     static_cast<ibv_qp*>(this));
  }
  UpdateService();
}

void QueuePair::EnterReset() {
  if (link_ != nullptr) link_->MarkClosed();
  DropLink();
  requester_.Reset();
  responder_.Reset();
  context_.send_cq->DropCompletions(this);
  context_.recv_cq->DropCompletions(this);
  attributes_ = {};
  drain_pending_ = false;
  state = IBV_QPS_RESET;
  UpdateService();
}

void QueuePair::DropLink() {
  if (link_ == nullptr) return;
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

// --- Posting -----------------------------------------------------------------

int QueuePair::PostSend(ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_ERR)
      [[unlikely]] {
    *bad_wr = wr;
    return EINVAL;
  }
  const int error = requester_.Post(wr, bad_wr);
  if (state == IBV_QPS_ERR) [[unlikely]] {
    requester_.Flush();
    return error;
  }
  if (requester_.NeedsService()) {
    needs_service_ = true;
    context_.send_cq->Touch(this);
  }
  // Nobody may poll before there is an event, and what is over already makes
  // one.
  if (needs_service_ && context_.send_cq->armed()) Progress();
  return error;
}

int QueuePair::PostReceive(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  if (state == IBV_QPS_RESET || srq_ != nullptr) {
    *bad_wr = wr;
    return EINVAL;
  }
  const int error = responder_.Post(wr, bad_wr);
  if (state == IBV_QPS_ERR) {
    responder_.Flush();
  } else if (responder_.NeedsService()) [[unlikely]] {
    Progress();  // a packet waited for it
  }
  return error;
}

// --- Progress ----------------------------------------------------------------

void QueuePair::Progress() {
  if (live_link_ == nullptr) [[unlikely]] {
    uint64_t budget_bytes = kCopyQuantumBytes;
    if (state == IBV_QPS_RTS && requester_.Progress(&budget_bytes)) {
      EnterError(Farewell::kTellPeer);
    }
    UpdateService();
    return;
  }
  uint64_t own_budget_bytes = kCopyQuantumBytes;
  uint64_t* const budget_bytes = Budget(&own_budget_bytes);
  if (live_link_->HasIncoming() && !TakePackets(budget_bytes)) return;
  if (requester_.NeedsService() && requester_.Progress(budget_bytes)) {
    EnterError(Farewell::kTellPeer);
    return;
  }
  if (live_link_->hung_up() && !MoreToDeliver()) [[unlikely]] {
    EnterError(Farewell::kSilent);
    Unwatch();
    return;
  }
  if (drain_pending_) CheckDrained();
  UpdateService();
  if (live_link_->TakeRing()) [[unlikely]]
    OnRing();
}

// What may be copied in this turn: all QPs that one poll looks at share it.
uint64_t* QueuePair::Budget(uint64_t* own) {
  for (CompletionQueue* cq : {context_.recv_cq, context_.send_cq}) {
    if (cq->polling()) return cq->copy_budget();
  }
  return own;
}

// Whether packets that came before a hang-up can still be delivered: not those
// for which no receive is posted.
bool QueuePair::MoreToDeliver() const {
  return live_link_->HasIncoming() && !responder_.waits_for_receive();
}

bool QueuePair::TakePackets(uint64_t* budget_bytes) {
  bool taken = false;
  for (uint64_t i = 0; i < kPacketsPerTurn && live_link_->HasIncoming(); ++i) {
    const PacketResult result = TakePacket(budget_bytes);
    if (result == PacketResult::kEnded) return false;
    if (result == PacketResult::kWaits) break;
    taken = true;
  }
  if (taken && !responder_.discarding()) live_link_->Acknowledge();
  return true;
}

QueuePair::PacketResult QueuePair::TakePacket(uint64_t* budget_bytes) {
  Packet packet;
  switch (live_link_->Peek(&packet)) {
    case Link::PeekResult::kNothing:
      return PacketResult::kWaits;
    case Link::PeekResult::kViolation:
      OnViolation(live_link_->violation());
      return PacketResult::kEnded;
    case Link::PeekResult::kPacket:
      break;
  }
  switch (packet.kind) {
    case PacketKind::kRefused:
      live_link_->Consume();
      requester_.OnRefused(CheckRefusal(packet.immediate));
      return PacketResult::kTaken;
    case PacketKind::kGone:
      live_link_->Consume();
      requester_.OnPeerGone();
      return PacketResult::kTaken;
    case PacketKind::kAccessFault:
      live_link_->Consume();
      environment_.async_events->Raise(packet.immediate == IBV_WC_REM_ACCESS_ERR
                                           ? IBV_EVENT_QP_ACCESS_ERR
                                           : IBV_EVENT_QP_REQ_ERR,
                                       static_cast<ibv_qp*>(this));
      EnterError(Farewell::kTellPeer);
      return PacketResult::kEnded;
    default:
      break;
  }
  if (!context_.recv_cq->HasRoom()) return PacketResult::kWaits;
  switch (responder_.Receive(packet, budget_bytes)) {
    case Responder::Result::kConsumed:
      return PacketResult::kTaken;
    case Responder::Result::kNotReady:
    case Responder::Result::kMore:
      needs_service_ = true;
      return PacketResult::kWaits;
    case Responder::Result::kViolation:
      OnViolation("a message that describes no memory of its sender");
      return PacketResult::kEnded;
    case Responder::Result::kFailed:
      break;
  }
  EnterError(Farewell::kTellPeer);
  return PacketResult::kEnded;
}

void QueuePair::OnViolation(const char* what) {
  Log(absl::StrCat("QP ", qp_num, ": the peer's QP ", attributes_.dest_qp_num,
                   " broke the protocol: ", what));
  environment_.async_events->Raise(IBV_EVENT_QP_FATAL,
                                   static_cast<ibv_qp*>(this));
  EnterError(Farewell::kTellPeer);
}

void QueuePair::CheckDrained() {
  if (!requester_.drained()) return;
  drain_pending_ = false;
  environment_.async_events->Raise(IBV_EVENT_SQ_DRAINED,
                                   static_cast<ibv_qp*>(this));
}

void QueuePair::UpdateService() {
  needs_service_ = state == IBV_QPS_RTS || state == IBV_QPS_SQD
                       ? requester_.NeedsService() ||
                             responder_.NeedsService() || drain_pending_
                       : false;
}

void QueuePair::ServiceLink() {
  if (link_ == nullptr) return;
  link_->Service();
  if (live_link_ != nullptr) {
    Progress();
  } else {
    link_->TakeRing();
    // It stays readable once it hung up, and there is nothing more to hear.
    if (link_->hung_up()) Unwatch();
  }
}

void QueuePair::OnRing() {
  bool armed = false;
  for (CompletionQueue* cq : {context_.send_cq, context_.recv_cq}) {
    if (!cq->armed()) continue;
    cq->Rearm();
    armed = true;
  }
  if (!armed) return;
  // What the peer sent without ringing, because it had rung for the old number.
  AsymmetricFence::Heavy();
  Progress();
}

void QueuePair::OnHangUp() {
  context_.send_cq->SetAttention();
  context_.recv_cq->SetAttention();
}

}  // namespace rdma::soft
