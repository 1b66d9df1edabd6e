#include "rdma_transport/software/engine/queue_pair.h"

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/software/log.h"

namespace rdma::soft {
namespace {

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
      responder_(&context_, srq_, init.cap),
      helper_(&context_) {
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
  has_one_cq_ = context_.send_cq == context_.recv_cq;
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

// --- Posting -----------------------------------------------------------------

int QueuePair::WakePeer() {
  context_.link->Wake(/*solicited=*/false);
  return 0;
}

int QueuePair::PostSendLong(ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  if (state == IBV_QPS_RTS && requester_.PostSmall(*wr)) return 0;
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_ERR)
      [[unlikely]] {
    *bad_wr = wr;
    return EINVAL;
  }
  const int error =
      requester_.PostDescribed(*wr) ? 0 : requester_.Post(wr, bad_wr);
  if (state == IBV_QPS_ERR) [[unlikely]] {
    requester_.Flush();
    return error;
  }
  if (requester_.NeedsService()) {
    UpdateService();
    context_.send_cq->Touch(this);
  }
  // Nobody may poll before there is an event: what is over already makes one,
  // and so does what the peer rang for, if the ring was heard while posting.
  if ((needs_service_ && context_.send_cq->armed()) ||
      (live_link_ != nullptr && live_link_->rang())) [[unlikely]] {
    Progress();
  }
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

// REQUIRES: responder_.TakesSmall().
ABSL_ATTRIBUTE_ALWAYS_INLINE inline QueuePair::AtOnce QueuePair::TakeAtOnce(
    Link* link, uint64_t* budget_bytes, ibv_wc* received) {
  uint64_t word;
  bool taken;
  if (link->PeekSmall(&word)) {
    taken = responder_.ReceiveSmall(link, word, received);
  } else if (!link->IsPacket(word)) {
    return AtOnce::kNothing;
  } else {
    taken = responder_.ReceiveDescribed(link, word, budget_bytes, received);
  }
  return taken ? AtOnce::kTaken : AtOnce::kOther;
}

// The usual case of Progress. A link that has rung, or whose peer hung up, is
// no reason to do more: the ring was heard while the link was serviced, and the
// QP's attention was asked for with the hang-up; Progress follows either.
PollTarget::Taken QueuePair::TakeSmall(ibv_wc* completions, ibv_wc* end,
                                       uint64_t* budget_bytes) {
  assert(!is_idle());
  Link* const link = live_link_;
  ibv_wc* next = completions;
  bool all = true;
  for (; next != end; ++next) {
    const AtOnce result = TakeAtOnce(link, budget_bytes, next);
    if (result != AtOnce::kTaken) {
      all = result == AtOnce::kNothing;
      break;
    }
  }
  if (next != completions) [[likely]] {
    link->SetSeveralTaken(next - completions > 1);
    link->AcknowledgeSmall();
  }
  return {next, all && (!needs_service_ || requester_.PassTurn())};
}

void QueuePair::Progress() {
  EndIdleness();
  if (live_link_ == nullptr) [[unlikely]] {
    ProgressUnconnected();
    return;
  }
  uint64_t own_budget_bytes = kCopyQuantumBytes;
  uint64_t* const budget_bytes = Budget(&own_budget_bytes);
  if (small_cq_ != nullptr && ProgressSmall(budget_bytes)) return;
  took_other_ = false;
  if (live_link_->HasIncoming()) {
    if (!TakePackets(budget_bytes)) return;
  } else if (receive_busy_) [[unlikely]] {
    SetBusy(&receive_busy_, false);
  }
  if (requester_.NeedsService() && requester_.Progress(budget_bytes)) {
    EnterError(Farewell::kTellPeer);
    return;
  }
  // Whoever has work of its own does that.
  if (helper_.active() && !context_.recv_cq->had_work()) [[unlikely]] {
    helper_.Help(budget_bytes);
    // The one that rests now does not come here again.
    SetBusy(&help_busy_, helper_.active() && helper_.busy());
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

// False: there is more to do.
inline bool QueuePair::ProgressSmall(uint64_t* budget_bytes) {
  CompletionQueue* const cq = context_.recv_cq;
  ibv_wc* const entry = cq->DirectEntry();
  if (entry == nullptr || live_link_->hung_up() || live_link_->rang()) {
    return false;
  }
  ibv_wc* const most =
      entry + std::min<int64_t>(cq->direct_room(), kPacketsPerTurn);
  const Taken taken = TakeSmall(entry, most, budget_bytes);
  cq->Pushed(taken.next - entry);
  // Of what is left for the next turn the peer does not ring: see TakePackets.
  return taken.all && taken.next - entry != kPacketsPerTurn;
}

// RTS by hand, where every request fails; or no state in which there is work.
void QueuePair::ProgressUnconnected() {
  uint64_t budget_bytes = kCopyQuantumBytes;
  if (state == IBV_QPS_RTS && requester_.Progress(&budget_bytes)) {
    EnterError(Farewell::kTellPeer);
  }
  UpdateService();
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
  int64_t left = kPacketsPerTurn;
  PacketResult result = PacketResult::kTaken;
  while (left != 0 && live_link_->HasIncoming()) {
    if (TakeSmallPacket(budget_bytes)) {
      result = PacketResult::kTaken;
    } else {
      result = TakePacket(budget_bytes);
      took_other_ = true;
      if (result == PacketResult::kEnded) return false;
      if (result != PacketResult::kTaken) break;
    }
    taken = true;
    --left;
  }
  if (taken) {
    live_link_->SetSeveralTaken(kPacketsPerTurn - left > 1);
    if (!responder_.discarding()) live_link_->Acknowledge();
  }
  // What is left for the next turn for no reason of the peer's, it rings for
  // no more.
  const bool busy = result == PacketResult::kLater ||
                    (left == 0 && live_link_->HasIncoming());
  if (busy != receive_busy_) [[unlikely]]
    SetBusy(&receive_busy_, busy);
  return true;
}

// The usual case of TakePacket. False: not so, and nothing happened.
inline bool QueuePair::TakeSmallPacket(uint64_t* budget_bytes) {
  ibv_wc* const entry = context_.recv_cq->DirectEntry();
  if (entry == nullptr || !responder_.TakesSmall() ||
      TakeAtOnce(live_link_, budget_bytes, entry) != AtOnce::kTaken) {
    return false;
  }
  context_.recv_cq->Pushed();
  return true;
}

void QueuePair::SetBusy(bool* counted, bool busy) {
  if (busy == *counted) return;
  *counted = busy;
  context_.recv_cq->SetBusy(this, busy);
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
    case PacketKind::kJointRead:
      live_link_->Consume();
      helper_.Begin();
      return PacketResult::kTaken;
    default:
      break;
  }
  if (!context_.recv_cq->HasRoom()) return PacketResult::kWaits;
  switch (responder_.Receive(packet, budget_bytes)) {
    case Responder::Result::kConsumed:
      return PacketResult::kTaken;
    case Responder::Result::kNotReady:
    case Responder::Result::kNotYet:
      needs_service_ = true;
      return PacketResult::kWaits;
    case Responder::Result::kMore:
      needs_service_ = true;
      return PacketResult::kLater;
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
  const bool requester_needs_it = requester_.NeedsService();
  const bool others_need_it = responder_.NeedsService() || receive_busy_ ||
                              drain_pending_ || helper_.active();
  needs_service_ = (state == IBV_QPS_RTS || state == IBV_QPS_SQD) &&
                   (requester_needs_it || others_need_it);
  if (needs_service_) EndIdleness();
  // Behind a packet that is not taken at once another such is likely.
  const bool takes_small =
      state == IBV_QPS_RTS && live_link_ != nullptr && !others_need_it &&
      responder_.TakesSmall() && !took_other_ &&
      (!requester_needs_it || (context_.send_cq == context_.recv_cq &&
                               requester_.OnlyAwaitsAcknowledgement()));
  small_cq_ = takes_small ? context_.recv_cq : nullptr;
}

void QueuePair::TellNotIdle() { context_.recv_cq->EndIdleness(this); }

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
  // What the peer sent without ringing, because it had rung for the old number.
  if (armed) Progress();
}

void QueuePair::OnHangUp() {
  context_.recv_cq->SetAttention(this);
  if (context_.send_cq != context_.recv_cq) {
    context_.send_cq->SetAttention(this);
  }
}

}  // namespace rdma::soft
