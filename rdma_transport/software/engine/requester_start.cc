// How a Requester starts work requests.
#include <utility>

#include "rdma_transport/software/engine/requester.h"
#include "rdma_transport/software/engine/sge_copy.h"
#include "rdma_transport/software/engine/work_request.h"

namespace rdma::soft {
namespace {

// SENDs of up to this many bytes are copied into the link even where the caller
// did not ask for inline: one more copy of a few cache lines costs less than
// the receiver's look-up of the sender's memory.
constexpr uint64_t kCopyIntoLinkBytes = kMaxPayloadBytes;

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

const std::byte* AddressOf(const ibv_sge& sge) {
  return reinterpret_cast<const std::byte*>(sge.addr);
}

}  // namespace

bool Requester::PostSmall(const ibv_send_wr& wr) {
  if (!IsSmall(wr)) return false;
  const ibv_sge& sge = *wr.sg_list;
  if (!qp_->link->SendSmall(wr.imm_data,
                            reinterpret_cast<const std::byte*>(sge.addr),
                            sge.length)) [[unlikely]] {
    return false;
  }
  NoteSent(wr, sge.length, IBV_SEND_INLINE);
  return true;
}

bool Requester::PostDescribed(const ibv_send_wr& wr) {
  constexpr unsigned int kFlags =
      IBV_SEND_INLINE | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
  if (small_limit_now_ < 0 || wr.next != nullptr ||
      wr.opcode != IBV_WR_SEND_WITH_IMM || wr.num_sge < 1 ||
      wr.num_sge > described_sges_ || (wr.send_flags & kFlags) != 0 ||
      sq_.full()) {
    return false;
  }
  const uint64_t bytes =
      TotalBytes(wr.sg_list, static_cast<uint32_t>(wr.num_sge));
  if (bytes <= kCopyIntoLinkBytes || bytes > kMaxMessageBytes) return false;
  Link* const link = qp_->link;
  Descriptor pieces[kLineDescriptors];
  Descriptor* next = pieces;
  for (const ibv_sge* sge = wr.sg_list; sge != wr.sg_list + wr.num_sge; ++sge) {
    KeyRange range;
    if (sge->length == 0 || !qp_->memory->FindLocal(qp_->pd, *sge, 0, &range) ||
        !link->Announce(range.arena)) [[unlikely]] {
      return false;
    }
    *next++ = {range.arena, sge->length, range.OffsetOf(sge->addr)};
  }
  const bool signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  if (signaled && signaled_pending_ == 0) AskForNext();
  if (!link->MayPutShort()) [[unlikely]]
    return false;
  if (link->PutShort(wr.imm_data, reinterpret_cast<const std::byte*>(pieces),
                     static_cast<uint32_t>(wr.num_sge) * sizeof(Descriptor),
                     kDescribedBit)) [[unlikely]] {
    link->Wake(/*solicited=*/false);
  }
  if (signaled) {
    newest_signaled_ = sq_.tail_;
    ++signaled_pending_;
  }
  NoteSent(wr, static_cast<uint32_t>(bytes), signaled ? IBV_SEND_SIGNALED : 0);
  return true;
}

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
  return (running_ || IsHalfDone(wqe)) && !failed_ &&
         (!wqe.Has(IBV_SEND_FENCE) || reads_.empty());
}

bool Requester::IsHalfDone(const SendWqe& wqe) const {
  if (sq_.started_ == sq_.tail_ || &wqe != &sq_.At(sq_.started_)) return false;
  const SendDetail& detail = sq_.DetailAt(sq_.started_);
  if (IsWrite(wqe.opcode)) return detail.bytes_done != 0;
  return wqe.opcode == IBV_WR_LOCAL_INV && detail.revoked;
}

bool Requester::drained() const {
  return sq_.done_ == sq_.started_ && !IsHalfDone(sq_.At(sq_.started_));
}

Requester::StartResult Requester::Start(uint32_t index,
                                        uint64_t* budget_bytes) {
  SendWqe& wqe = sq_.At(index);
  if (IsLocal(wqe.opcode)) {
    return wqe.opcode == IBV_WR_BIND_MW ? StartBind(index)
                                        : StartInvalidate(index);
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
  if (wqe.signaled() && signaled_pending_ == 0) AskForNext();
  wqe.position = qp_->link->Send(packet, parts, part_count);
  if (wqe.position == 0) [[unlikely]] {
    waits_for_room_ = true;
    // Any acknowledgement makes some, be it one that came just now.
    return Ask(acknowledged_ + 1) ? StartResult::kBusy : StartResult::kBlocked;
  }
  wqe.phase = SendWqe::Phase::kSent;
  sent_ = true;
  sent_solicited_ |= packet.solicited;
  sent_position_ = wqe.position;
  if (waits_for_room_) [[unlikely]] {
    waits_for_room_ = false;
    if (signaled_pending_ == 0) AskForNothing();
  }
  return StartResult::kStarted;
}

Requester::StartResult Requester::StartRead(uint32_t index) {
  SendWqe& wqe = sq_.At(index);
  // A QP that may have none outstanding can never start one.
  if (max_reads_ == 0) return Fail(wqe, IBV_WC_LOC_QP_OP_ERR);
  if (reads_.size() == max_reads_) return StartResult::kBlocked;
  wqe.phase = SendWqe::Phase::kReading;
  SendDetail& detail = sq_.DetailAt(index);
  detail.pieces_out = 0;
  detail.is_joint = JointReader::Takes(*qp_, wqe, sq_.SgesAt(index));
  if (detail.is_joint && joint_ == nullptr) {
    joint_ = std::make_unique<JointReader>(qp_);
  }
  reads_.push(index);
  return StartResult::kStarted;
}

Requester::StartResult Requester::StartWrite(uint32_t index,
                                             uint64_t* budget_bytes) {
  SendWqe& wqe = sq_.At(index);
  SendDetail& detail = sq_.DetailAt(index);
  if (detail.bytes_done != wqe.byte_len || wqe.byte_len == 0) {
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

Requester::StartResult Requester::StartInvalidate(uint32_t index) {
  SendWqe& wqe = sq_.At(index);
  SendDetail& detail = sq_.DetailAt(index);
  const uint32_t rkey = wqe.immediate;
  if (!detail.revoked && !qp_->memory->Invalidate(rkey, qp_->pd, qp_->qp_num)) {
    return Fail(wqe, IBV_WC_MW_BIND_ERR);
  }
  detail.revoked = true;
  if (qp_->link != nullptr && qp_->link->PeersWritingKey() == rkey &&
      qp_->memory->MayBeWritten(rkey) && !qp_->link->IsPeerGone()) {
    // A peer that is stopped in its write, or only says that it writes, holds
    // us no longer than DeregMr.
    const int64_t now_ns = qp_->clock->NowNanoseconds();
    if (detail.waiting_since_ns == 0) detail.waiting_since_ns = now_ns;
    return now_ns - detail.waiting_since_ns > MemoryRegistry::kRevokeLimitNs
               ? Fail(wqe, IBV_WC_MW_BIND_ERR)
               : StartResult::kBusy;
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

}  // namespace rdma::soft
