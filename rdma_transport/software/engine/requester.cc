#include "rdma_transport/software/engine/requester.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rdma_transport/asymmetric_fence.h"
#include "rdma_transport/software/engine/sge_copy.h"
#include "rdma_transport/software/engine/work_request.h"

namespace rdma::soft {
namespace {

// READs and WRITEs posted are carried out at once up to this many bytes for a
// post, some 4 us; the rest follows while polling.
constexpr uint64_t kPostQuantumBytes = 64 << 10;

}  // namespace

Requester::Requester(const QpContext* qp, const ibv_qp_cap& cap,
                     bool signal_all)
    : qp_(qp),
      cap_(cap),
      signal_all_(signal_all),
      small_limit_(signal_all || cap.max_send_sge == 0
                       ? -1
                       : int64_t{cap.max_inline_data}),
      described_sges_(
          static_cast<int>(std::min(cap.max_send_sge, kLineDescriptors))),
      sq_(cap) {}

Requester::~Requester() { Reset(); }

// --- Posting -----------------------------------------------------------------

int Requester::Post(ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    error = PostOne(*wr);
    if (error != 0) [[unlikely]] {
      *bad_wr = wr;
      break;
    }
  }
  if (!reads_.empty()) {
    uint64_t budget_bytes = kPostQuantumBytes;
    RunReads(&budget_bytes, Offers::kLeave);
    UpdateBusy();
  }
  if (sent_) WakePeer();
  UpdateSmallLimit();
  return error;
}

void Requester::WakePeer() {
  sent_ = false;
  qp_->link->Wake(std::exchange(sent_solicited_, false));
}

int Requester::PostOne(const ibv_send_wr& wr) {
  uint64_t total_bytes = 0;
  if (const int error = Validate(wr, &total_bytes)) [[unlikely]]
    return error;
  if (sq_.full()) [[unlikely]]
    return ENOMEM;

  const uint32_t index = sq_.tail_;
  SendWqe& wqe = sq_.At(index);
  wqe.wr_id = wr.wr_id;
  wqe.position = 0;
  wqe.byte_len = static_cast<uint32_t>(total_bytes);
  wqe.send_flags = static_cast<uint8_t>(wr.send_flags |
                                        (signal_all_ ? IBV_SEND_SIGNALED : 0));
  wqe.immediate = wr.imm_data;
  wqe.opcode = wr.opcode;
  wqe.phase = SendWqe::Phase::kWaiting;
  wqe.sge_count = static_cast<uint8_t>(IsLocal(wr.opcode) ? 0 : wr.num_sge);
  wqe.status = IBV_WC_SUCCESS;

  if (wqe.signaled()) newest_signaled_ = index;
  const bool first = sq_.started_ == sq_.tail_;
  if (IsSend(wr.opcode) && first && MayStart(wqe)) [[likely]] {
    const Source source = {wr.sg_list, static_cast<uint32_t>(wr.num_sge),
                           wqe.Has(IBV_SEND_INLINE)};
    if (StartSend(wqe, source) == StartResult::kStarted) [[likely]] {
      signaled_pending_ += wqe.signaled();
      ++sq_.tail_;
      ++sq_.started_;
      return 0;
    }
  }
  signaled_pending_ += wqe.signaled();
  sq_.SaveDetail(index, wr);
  ++sq_.tail_;
  if (first && !IsSend(wr.opcode)) {
    uint64_t budget_bytes = kPostQuantumBytes;
    StartWaiting(&budget_bytes);
  }
  return 0;
}

int Requester::Validate(const ibv_send_wr& wr, uint64_t* total_bytes) const {
  if (!HasSupportedOpcode(wr)) return EINVAL;
  if (IsLocal(wr.opcode)) {
    return wr.opcode == IBV_WR_BIND_MW && wr.bind_mw.mw == nullptr ? EINVAL : 0;
  }
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > cap_.max_send_sge) {
    return EINVAL;
  }
  *total_bytes = TotalBytes(wr.sg_list, static_cast<uint32_t>(wr.num_sge));
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 &&
      (*total_bytes > cap_.max_inline_data || IsRead(wr.opcode))) {
    return EINVAL;
  }
  return *total_bytes > kMaxMessageBytes ? EINVAL : 0;
}

// --- Reading -----------------------------------------------------------------

void Requester::RunReads(uint64_t* budget_bytes, Offers offers) {
  if (joint_ != nullptr) CollectPieces();
  while (*budget_bytes != 0) {
    if (ReadNext(budget_bytes)) continue;
    if (offers == Offers::kLeave || !ReadTakenBack(budget_bytes)) break;
  }
  while (!reads_.empty() && !reads_.next_is_front() &&
         sq_.DetailAt(reads_.front()).pieces_out == 0) {
    sq_.At(reads_.front()).phase = SendWqe::Phase::kDone;
    reads_.pop();
  }
  if (reads_.empty() && joint_ != nullptr) joint_->Rest();
}

void Requester::CollectPieces() {
  bool any = false;
  joint_->Collect([&](uint32_t index) {
    --sq_.DetailAt(index).pieces_out;
    any = true;
  });
  if (any || !joint_->waits() || joint_->MayTakeBack()) {
    pieces_awaited_since_ns_ = 0;
    return;
  }
  // The peer copies, or was stopped while it did.
  const int64_t now_ns = qp_->clock->NowNanoseconds();
  if (pieces_awaited_since_ns_ == 0) pieces_awaited_since_ns_ = now_ns;
  if (now_ns - pieces_awaited_since_ns_ > kAnnouncementLimitNs &&
      !IsBehindFailure(reads_.front())) {
    sq_.At(reads_.front()).status = IBV_WC_RETRY_EXC_ERR;
    OnReadFailed(reads_.front());
  }
}

// Only joint READs begin before those in front of them are over.
bool Requester::MayReadNext() const {
  // What comes behind a failed work request is not carried out.
  return reads_.has_next() && !IsBehindFailure(reads_.next()) &&
         (reads_.next_is_front() || sq_.DetailAt(reads_.next()).is_joint);
}

bool Requester::ReadNext(uint64_t* budget_bytes) {
  if (!MayReadNext()) return false;
  const uint32_t index = reads_.next();
  SendWqe& wqe = sq_.At(index);
  SendDetail& detail = sq_.DetailAt(index);
  const ibv_sge* const sges = sq_.SgesAt(index);
  // The peer helps with what is known to be here, and granted.
  if (detail.is_joint && !(detail.bytes_done == 0 && reads_.next_is_front())) {
    joint_->Offer(index, wqe, sges[0], &detail);
    if (detail.bytes_done == wqe.byte_len) {
      reads_.advance();
      return true;
    }
  }
  const StepResult result =
      wqe.opcode == IBV_WR_RDMA_READ
          ? ReadStep(*qp_, wqe, detail, sges, budget_bytes)
          : AtomicStep(*qp_, wqe, detail, sges);
  if (result == StepResult::kMore || result == StepResult::kLater) return false;
  if (result == StepResult::kFailed) OnReadFailed(index);
  reads_.advance();
  return true;
}

bool Requester::ReadTakenBack(uint64_t* budget_bytes) {
  if (joint_ == nullptr) return false;
  const JointReader::Piece* const piece = joint_->TakeBack();
  if (piece == nullptr) return false;
  const uint32_t index = piece->index;
  SendDetail& detail = sq_.DetailAt(index);
  if (!IsBehindFailure(index)) {
    const StepResult result =
        ReadPiece(*qp_, sq_.At(index), detail, sq_.SgesAt(index), piece->offset,
                  piece->bytes);
    if (result == StepResult::kLater) return false;
    if (result == StepResult::kFailed) OnReadFailed(index);
    *budget_bytes -= std::min<uint64_t>(*budget_bytes, piece->bytes);
  }
  joint_->Drop(piece);
  --detail.pieces_out;
  return true;
}

// REQUIRES: nothing before it failed.
void Requester::OnReadFailed(uint32_t index) {
  SendWqe& wqe = sq_.At(index);
  if (!failed_) OnAccessFault(wqe);
  wqe.phase = SendWqe::Phase::kDone;
  failed_ = true;
  failed_index_ = index;
}

// --- Progress and completion -------------------------------------------------

bool Requester::Progress(uint64_t* budget_bytes) {
  // Each look takes the cache line from the peer, which is about to write it.
  // An armed CQ's owner looks for the last time before it sleeps.
  if (OnlyAwaitsAcknowledgement()) {
    if (!qp_->send_cq->armed() && PassTurn()) return false;
    turns_ = 0;
    // All others before the signaled one are over with it, without a word. So
    // will be those behind it, with the next one.
    SendWqe& signaled = sq_.At(newest_signaled_);
    if (signaled.phase == SendWqe::Phase::kSent &&
        IsAcknowledged(signaled.position)) {
      sq_.done_ = newest_signaled_;
      Complete(signaled, IBV_WC_SUCCESS);
      return false;
    }
  }
  if (sq_.started_ != sq_.tail_) StartWaiting(budget_bytes);
  if (!reads_.empty()) RunReads(budget_bytes, Offers::kTakeBack);
  UpdateBusy();
  if (sent_) WakePeer();
  const bool failed = CompleteFinished();
  UpdateSmallLimit();
  return failed;
}

bool Requester::CompleteFinished() {
  while (sq_.done_ != sq_.started_) {
    SendWqe& wqe = sq_.At(sq_.done_);
    if (wqe.phase == SendWqe::Phase::kReading) return false;
    if (wqe.phase == SendWqe::Phase::kSent && !IsAcknowledged(wqe.position)) {
      if (!AskAgain()) return false;
      continue;
    }
    const ibv_wc_status status = wqe.status;
    Complete(wqe, status);
    if (status != IBV_WC_SUCCESS) return true;
  }
  return false;
}

bool Requester::IsAcknowledged(uint64_t position) {
  if (acknowledged_ < position) acknowledged_ = qp_->link->acknowledged();
  return acknowledged_ >= position;
}

// --- Asking for acknowledgements ---------------------------------------------
//
// Who sleeps is woken for the oldest signaled request that the peer has not
// acknowledged, or, where a request waits for room, for any acknowledgement.
// Asking before the packet is sent costs nothing; the peer may have consumed
// what is asked for later already, which only matters to those who sleep.

void Requester::AskForNext() {
  // All that a packet takes is consumed at once.
  wanted_ = sent_position_ + 1;
  qp_->link->WantAcknowledgement(wanted_);
}

bool Requester::AskAgain() {
  if (signaled_pending_ == 0 || waits_for_room_ || wanted_ > acknowledged_) {
    return false;
  }
  // What is signaled may be done already, and wait for the packets before it.
  uint64_t position = 0;
  for (uint32_t index = sq_.done_; index != sq_.started_; ++index) {
    const SendWqe& wqe = sq_.At(index);
    if (wqe.phase == SendWqe::Phase::kSent) position = wqe.position;
    if (wqe.signaled() && position > acknowledged_) return Ask(position);
  }
  return false;
}

bool Requester::Ask(uint64_t position) {
  if (wanted_ == position) return false;
  wanted_ = position;
  qp_->link->WantAcknowledgement(position);
  // Whoever arms the CQ after this looks himself.
  if (!qp_->send_cq->armed()) return false;
  AsymmetricFence::Heavy(AsymmetricFence::Reach::kProcesses);
  const uint64_t before = acknowledged_;
  acknowledged_ = qp_->link->acknowledged();
  return acknowledged_ != before;
}

void Requester::AskForNothing() {
  if (wanted_ == 0) return;
  wanted_ = 0;
  qp_->link->WantAcknowledgement(0);
}

void Requester::Complete(SendWqe& wqe, ibv_wc_status status) {
  ++sq_.done_;
  if (!wqe.signaled() && status == IBV_WC_SUCCESS) return;
  signaled_pending_ -= wqe.signaled();
  if (signaled_pending_ == 0 && !waits_for_room_) AskForNothing();
  ibv_wc completion = {};
  completion.wr_id = wqe.wr_id;
  completion.status = status;
  completion.opcode = CompletionOpcode(wqe.opcode);
  completion.byte_len = wqe.byte_len;
  completion.qp_num = qp_->qp_num;
  const uint32_t slots = sq_.done_ - std::exchange(reported_, sq_.done_);
  qp_->send_cq->Push(completion, qp_->target, slots, /*solicited=*/false);
}

void Requester::OnRefused(ibv_wc_status status) {
  for (uint32_t index = sq_.done_; index != sq_.started_; ++index) {
    if (failed_ && index == failed_index_) return;
    SendWqe& wqe = sq_.At(index);
    if (wqe.phase != SendWqe::Phase::kSent || IsAcknowledged(wqe.position)) {
      continue;
    }
    wqe.status = status;
    wqe.phase = SendWqe::Phase::kDone;
    failed_ = true;
    failed_index_ = index;
    UpdateSmallLimit();
    return;
  }
}

void Requester::OnPeerGone() {
  SetUnreachable();
  for (uint32_t index = sq_.done_; index != sq_.started_; ++index) {
    if (failed_ && index == failed_index_) return;
    SendWqe& wqe = sq_.At(index);
    if (wqe.phase == SendWqe::Phase::kDone ||
        (wqe.phase == SendWqe::Phase::kSent && IsAcknowledged(wqe.position))) {
      continue;
    }
    wqe.status = IBV_WC_RETRY_EXC_ERR;
    wqe.phase = SendWqe::Phase::kDone;
    ForgetReads();
    failed_ = true;
    failed_index_ = index;
    return;
  }
}

void Requester::Flush() {
  running_ = false;
  if (qp_->link != nullptr) {
    acknowledged_ = std::max(acknowledged_, qp_->link->acknowledged());
  }
  // Behind a failure that was completed nothing succeeds, nor fails by itself.
  const bool failure_completed =
      failed_ && static_cast<int32_t>(sq_.done_ - failed_index_) > 0;
  if (!failure_completed) CompleteFinished();
  failed_ = waits_for_room_ = false;
  while (sq_.done_ != sq_.tail_) {
    Complete(sq_.At(sq_.done_), IBV_WC_WR_FLUSH_ERR);
  }
  sq_.started_ = sq_.tail_;
  ForgetReads();
  UpdateBusy();
  UpdateSmallLimit();
}

void Requester::Reset() {
  running_ = unreachable_ = failed_ = sent_ = sent_solicited_ = false;
  waits_for_room_ = false;
  sq_.Reset();
  reported_ = sq_.tail_;
  signaled_pending_ = 0;
  acknowledged_ = sent_position_ = wanted_ = 0;
  ForgetReads();
  UpdateBusy();
  UpdateSmallLimit();
}

void Requester::UpdateBusy() {
  // The peer rings for what it has copied.
  const bool reads =
      MayReadNext() || (joint_ != nullptr && joint_->MayTakeBack());
  const bool busy =
      reads || (blocked_by_own_work_ && sq_.started_ != sq_.tail_);
  if (busy == busy_) return;
  busy_ = busy;
  qp_->send_cq->SetBusy(qp_->target, busy);
}

}  // namespace rdma::soft
