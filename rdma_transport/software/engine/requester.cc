#include "rdma_transport/software/engine/requester.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "rdma_transport/software/engine/sge_copy.h"

namespace rdma::soft {
namespace {

// READs and WRITEs posted are carried out at once up to this many bytes for a
// post, some 4 us; the rest follows while polling.
constexpr uint64_t kPostQuantumBytes = 64 << 10;

// SENDs of up to this many bytes are copied into the link even where the caller
// did not ask for inline: one more copy of a few cache lines costs less than
// the receiver's look-up of the sender's memory.
constexpr uint64_t kCopyIntoLinkBytes = kMaxPayloadBytes;

bool IsSend(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
         opcode == IBV_WR_SEND_WITH_INV;
}

bool IsRead(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
         opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool IsWrite(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool IsLocal(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

// Whether the work request's opcode is one that this device has. The caller may
// have put any number there, so it is not loaded as an enumerator.
bool HasSupportedOpcode(const ibv_send_wr& wr) {
  uint32_t opcode;
  static_assert(sizeof(opcode) == sizeof(wr.opcode));
  std::memcpy(&opcode, &wr.opcode, sizeof(opcode));
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW:
      return true;
    default:
      return false;
  }
}

PacketKind KindOf(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND_WITH_IMM:
      return PacketKind::kSendWithImmediate;
    case IBV_WR_SEND_WITH_INV:
      return PacketKind::kSendWithInvalidate;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return PacketKind::kWriteWithImmediate;
    default:
      return PacketKind::kSend;
  }
}

ibv_wc_opcode CompletionOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
    default:
      return IBV_WC_SEND;
  }
}

const std::byte* AddressOf(const ibv_sge& sge) {
  return reinterpret_cast<const std::byte*>(sge.addr);
}

}  // namespace

Requester::Requester(const QpContext* qp, const ibv_qp_cap& cap,
                     bool signal_all)
    : qp_(qp), cap_(cap), signal_all_(signal_all), sq_(cap) {}

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
    if (running_) RunReads(&budget_bytes);
    UpdateBusy();
  }
  if (sent_) WakePeer();
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
  wqe.send_flags = wr.send_flags;
  wqe.immediate = wr.imm_data;
  wqe.opcode = wr.opcode;
  wqe.phase = SendWqe::Phase::kWaiting;
  wqe.sge_count = static_cast<uint8_t>(IsLocal(wr.opcode) ? 0 : wr.num_sge);
  wqe.signaled = signal_all_ || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  wqe.revoked = false;
  wqe.status = IBV_WC_SUCCESS;

  const bool first = sq_.started_ == sq_.tail_;
  if (IsSend(wr.opcode) && first && MayStart(wqe)) [[likely]] {
    const Source source = {wr.sg_list, static_cast<uint32_t>(wr.num_sge),
                           wqe.Has(IBV_SEND_INLINE)};
    if (StartSend(wqe, source) == StartResult::kStarted) [[likely]] {
      signaled_pending_ += wqe.signaled;
      ++sq_.tail_;
      ++sq_.started_;
      return 0;
    }
  }
  signaled_pending_ += wqe.signaled;
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

// --- Starting ----------------------------------------------------------------

void Requester::StartWaiting(uint64_t* budget_bytes) {
  StartResult result = StartResult::kStarted;
  while (sq_.started_ != sq_.tail_ && MayStart(sq_.At(sq_.started_))) {
    result = Start(sq_.started_, budget_bytes);
    if (result != StartResult::kStarted) break;
    ++sq_.started_;
  }
  blocked_by_own_work_ = result == StartResult::kBusy;
  UpdateBusy();
}

bool Requester::MayStart(const SendWqe& wqe) const {
  return running_ && !failed_ && (!wqe.Has(IBV_SEND_FENCE) || reads_.empty());
}

Requester::StartResult Requester::Start(uint32_t index,
                                        uint64_t* budget_bytes) {
  SendWqe& wqe = sq_.At(index);
  if (IsLocal(wqe.opcode)) {
    return wqe.opcode == IBV_WR_BIND_MW ? StartBind(index)
                                        : StartInvalidate(wqe);
  }
  if (unreachable_) return Fail(wqe, IBV_WC_RETRY_EXC_ERR);
  if (IsRead(wqe.opcode)) return StartRead(index);
  if (IsWrite(wqe.opcode)) return StartWrite(index, budget_bytes);
  return StartSend(
      wqe, {sq_.SgesAt(index), wqe.sge_count, wqe.Has(IBV_SEND_INLINE)});
}

Requester::StartResult Requester::StartSend(SendWqe& wqe,
                                            const Source& source) {
  if (unreachable_) [[unlikely]]
    return Fail(wqe, IBV_WC_RETRY_EXC_ERR);
  Packet packet;
  packet.kind = KindOf(wqe.opcode);
  packet.solicited = wqe.Has(IBV_SEND_SOLICITED);
  packet.immediate = wqe.immediate;

  if (source.inline_data || wqe.byte_len <= kCopyIntoLinkBytes) {
    ConstBytes parts[kMaxSges];
    for (uint32_t i = 0; i < source.count; ++i) {
      const ibv_sge& sge = source.sges[i];
      if (!source.inline_data && sge.length != 0 &&
          !qp_->memory->CheckLocal(qp_->pd, sge, 0)) [[unlikely]] {
        return Fail(wqe, IBV_WC_LOC_PROT_ERR);
      }
      parts[i] = {AddressOf(sge), sge.length};
    }
    packet.payload_bytes = static_cast<uint16_t>(wqe.byte_len);
    return PutIntoLink(wqe, packet, parts, static_cast<int>(source.count));
  }

  Descriptor descriptors[kMaxSges];
  uint32_t count = 0;
  const StartResult described = Describe(wqe, source, descriptors, &count);
  if (described != StartResult::kStarted || failed_) return described;
  packet.described = true;
  packet.payload_bytes = static_cast<uint16_t>(count * sizeof(Descriptor));
  const ConstBytes part = {reinterpret_cast<const std::byte*>(descriptors),
                           packet.payload_bytes};
  return PutIntoLink(wqe, packet, &part, 1);
}

Requester::StartResult Requester::Describe(SendWqe& wqe, const Source& source,
                                           Descriptor* descriptors,
                                           uint32_t* count) {
  for (uint32_t i = 0; i < source.count; ++i) {
    const ibv_sge& sge = source.sges[i];
    if (sge.length == 0) continue;
    KeyRange range;
    if (!qp_->memory->FindLocal(qp_->pd, sge, 0, &range)) {
      return Fail(wqe, IBV_WC_LOC_PROT_ERR);
    }
    if (!qp_->link->Announce(range.arena)) return StartResult::kBusy;
    descriptors[(*count)++] = {range.arena, sge.length,
                               range.OffsetOf(sge.addr)};
  }
  return StartResult::kStarted;
}

Requester::StartResult Requester::PutIntoLink(SendWqe& wqe,
                                              const Packet& packet,
                                              const ConstBytes* parts,
                                              int part_count) {
  wqe.position = qp_->link->Send(packet, parts, part_count);
  if (wqe.position == 0) [[unlikely]] {
    // Any acknowledgement makes room.
    qp_->link->WantAcknowledgement(acknowledged_ + 1);
    return StartResult::kBlocked;
  }
  wqe.phase = SendWqe::Phase::kSent;
  sent_ = true;
  sent_solicited_ |= packet.solicited;
  if (wqe.signaled && signaled_pending_ == 0) {
    qp_->link->WantAcknowledgement(wqe.position);
  }
  return StartResult::kStarted;
}

Requester::StartResult Requester::StartRead(uint32_t index) {
  SendWqe& wqe = sq_.At(index);
  // A QP that may have none outstanding can never start one.
  if (max_reads_ == 0) return Fail(wqe, IBV_WC_LOC_QP_OP_ERR);
  if (reads_.size() == max_reads_) return StartResult::kBlocked;
  wqe.phase = SendWqe::Phase::kReading;
  reads_.push(index);
  return StartResult::kStarted;
}

Requester::StartResult Requester::StartWrite(uint32_t index,
                                             uint64_t* budget_bytes) {
  SendWqe& wqe = sq_.At(index);
  SendDetail& detail = sq_.DetailAt(index);
  if (detail.bytes_done != wqe.byte_len) {
    if (*budget_bytes == 0) return StartResult::kBusy;
    switch (WriteStep(*qp_, wqe, detail, sq_.SgesAt(index), budget_bytes)) {
      case StepResult::kDone:
        break;
      case StepResult::kMore:
      case StepResult::kLater:
        return StartResult::kBusy;
      case StepResult::kFailed:
        OnAccessFault(wqe);
        return Fail(wqe, wqe.status);
    }
  }
  if (wqe.opcode == IBV_WR_RDMA_WRITE) {
    wqe.phase = SendWqe::Phase::kDone;
    return StartResult::kStarted;
  }
  Packet packet;
  packet.kind = PacketKind::kWriteWithImmediate;
  packet.solicited = wqe.Has(IBV_SEND_SOLICITED);
  packet.immediate = wqe.immediate;
  packet.payload_bytes = sizeof(wqe.byte_len);
  const ConstBytes part = {reinterpret_cast<const std::byte*>(&wqe.byte_len),
                           sizeof(wqe.byte_len)};
  return PutIntoLink(wqe, packet, &part, 1);
}

Requester::StartResult Requester::StartBind(uint32_t index) {
  SendWqe& wqe = sq_.At(index);
  const SendDetail& detail = sq_.DetailAt(index);
  MemoryRegistry::BindRequest request;
  request.window = static_cast<MemoryWindow*>(detail.window);
  request.rkey = detail.rkey;
  request.info = detail.bind;
  request.pd = qp_->pd;
  request.qp_num = qp_->qp_num;
  const ibv_wc_status status = qp_->memory->Bind(request);
  if (status != IBV_WC_SUCCESS) return Fail(wqe, status);
  // What cannot be announced now follows: a READ that comes sooner waits for
  // it.
  if (detail.bind.length != 0 && qp_->link != nullptr) {
    auto* const region = static_cast<MemoryRegion*>(detail.bind.mr);
    qp_->link->Announce(region->arena->id());
  }
  wqe.phase = SendWqe::Phase::kDone;
  return StartResult::kStarted;
}

Requester::StartResult Requester::StartInvalidate(SendWqe& wqe) {
  const uint32_t rkey = wqe.immediate;
  if (!wqe.revoked && !qp_->memory->Invalidate(rkey, qp_->pd, qp_->qp_num)) {
    return Fail(wqe, IBV_WC_MW_BIND_ERR);
  }
  wqe.revoked = true;
  if (qp_->link != nullptr && qp_->link->PeerIsWriting(rkey) &&
      !qp_->link->IsPeerGone()) {
    return StartResult::kBusy;
  }
  wqe.phase = SendWqe::Phase::kDone;
  return StartResult::kStarted;
}

Requester::StartResult Requester::Fail(SendWqe& wqe, ibv_wc_status status) {
  wqe.status = status;
  wqe.phase = SendWqe::Phase::kDone;
  failed_ = true;
  failed_index_ = sq_.started_;
  return StartResult::kStarted;
}

void Requester::OnAccessFault(const SendWqe& wqe) {
  if (wqe.status != IBV_WC_REM_ACCESS_ERR &&
      wqe.status != IBV_WC_REM_INV_REQ_ERR) {
    return;
  }
  Packet packet;
  packet.kind = PacketKind::kAccessFault;
  packet.immediate = wqe.status;
  qp_->link->Send(packet, nullptr, 0);
  qp_->link->Wake(/*solicited=*/true);
}

// --- Reading -----------------------------------------------------------------

void Requester::RunReads(uint64_t* budget_bytes) {
  while (!reads_.empty() && *budget_bytes != 0) {
    const uint32_t index = reads_.front();
    // What comes behind a failed work request is not carried out.
    if (failed_ && static_cast<int32_t>(index - failed_index_) >= 0) break;
    SendWqe& wqe = sq_.At(index);
    SendDetail& detail = sq_.DetailAt(index);
    const ibv_sge* const sges = sq_.SgesAt(index);
    const StepResult result =
        wqe.opcode == IBV_WR_RDMA_READ
            ? ReadStep(*qp_, wqe, detail, sges, budget_bytes)
            : AtomicStep(*qp_, wqe, detail, sges);
    if (result == StepResult::kMore || result == StepResult::kLater) break;
    if (result == StepResult::kFailed) {
      OnAccessFault(wqe);
      failed_ = true;
      failed_index_ = index;
    }
    wqe.phase = SendWqe::Phase::kDone;
    reads_.pop();
  }
}

// --- Progress and completion -------------------------------------------------

bool Requester::Progress(uint64_t* budget_bytes) {
  if (sq_.started_ != sq_.tail_) StartWaiting(budget_bytes);
  if (running_ && !reads_.empty()) RunReads(budget_bytes);
  UpdateBusy();
  if (sent_) WakePeer();
  return CompleteFinished();
}

bool Requester::CompleteFinished() {
  while (sq_.done_ != sq_.started_) {
    SendWqe& wqe = sq_.At(sq_.done_);
    if (wqe.phase == SendWqe::Phase::kReading) return false;
    if (wqe.phase == SendWqe::Phase::kSent && !IsAcknowledged(wqe.position)) {
      if (signaled_pending_ != 0) {
        qp_->link->WantAcknowledgement(wqe.position);
      }
      return false;
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

void Requester::Complete(SendWqe& wqe, ibv_wc_status status) {
  ++sq_.done_;
  signaled_pending_ -= wqe.signaled;
  if (!wqe.signaled && status == IBV_WC_SUCCESS) return;
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
    return;
  }
}

void Requester::OnPeerGone() {
  unreachable_ = true;
  if (failed_) return;
  for (uint32_t index = sq_.done_; index != sq_.started_; ++index) {
    SendWqe& wqe = sq_.At(index);
    if (wqe.phase == SendWqe::Phase::kDone ||
        (wqe.phase == SendWqe::Phase::kSent && IsAcknowledged(wqe.position))) {
      continue;
    }
    wqe.status = IBV_WC_RETRY_EXC_ERR;
    wqe.phase = SendWqe::Phase::kDone;
    reads_.clear();
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
  failed_ = false;
  CompleteFinished();
  while (sq_.done_ != sq_.tail_) {
    Complete(sq_.At(sq_.done_), IBV_WC_WR_FLUSH_ERR);
  }
  sq_.started_ = sq_.tail_;
  reads_.clear();
  UpdateBusy();
}

void Requester::Reset() {
  running_ = unreachable_ = failed_ = sent_ = sent_solicited_ = false;
  sq_.Reset();
  reported_ = sq_.tail_;
  signaled_pending_ = 0;
  acknowledged_ = 0;
  reads_.clear();
  UpdateBusy();
}

void Requester::UpdateBusy() {
  const bool busy =
      running_ &&
      (!reads_.empty() || (blocked_by_own_work_ && sq_.started_ != sq_.tail_));
  if (busy == busy_) return;
  busy_ = busy;
  qp_->send_cq->AddBusy(busy ? 1 : -1);
}

}  // namespace rdma::soft
