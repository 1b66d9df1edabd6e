#include "rdma_transport/software/engine/responder.h"

#include <algorithm>
#include <iterator>

#include "memory/copy_bytes.h"
#include "rdma_transport/software/engine/sge_copy.h"

namespace rdma::soft {
namespace {

constexpr uint8_t kRetryForEver = 7;

}  // namespace

int64_t RnrTimerNs(uint8_t min_rnr_timer) {
  // In units of 10 us.
  static constexpr int32_t kTimers[] = {
      65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
      48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
      2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  static_assert(std::size(kTimers) == 32);
  return int64_t{kTimers[min_rnr_timer & 31]} * 10'000;
}

Responder::Responder(const QpContext* qp, SharedReceiveQueue* srq,
                     const ibv_qp_cap& cap)
    : qp_(qp),
      srq_(srq),
      queue_(srq == nullptr ? cap.max_recv_wr : 0, cap.max_recv_sge),
      receives_(srq == nullptr ? &queue_ : srq->queue()) {}

Responder::~Responder() { Reset(); }

void Responder::OnConnected() {
  small_completion_.qp_num = qp_->qp_num;
  small_completion_.src_qp = qp_->link->peer_qp_num();
  small_completion_.wc_flags = IBV_WC_WITH_IMM;
}

int Responder::Post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  return queue_.Post(wr, bad_wr);
}

Responder::Result Responder::Receive(const Packet& packet,
                                     uint64_t* budget_bytes) {
  if (discarding_) [[unlikely]] {
    qp_->link->Consume();
    return Result::kConsumed;
  }
  if (held_) return ContinueHeld(packet, budget_bytes);
  const ReceiveWqe* const wqe = Front();
  if (wqe == nullptr) [[unlikely]]
    return OnNotReady();
  if (not_ready_since_ns_ != 0) [[unlikely]]
    OnReady();
  if (packet.described) {
    const Result held = Hold(packet, *wqe);
    return held == Result::kConsumed ? ContinueHeld(packet, budget_bytes)
                                     : held;
  }
  if (packet.kind == PacketKind::kWriteWithImmediate) {
    return ReceiveImmediate(packet, *wqe);
  }
  return ReceiveInline(packet, *wqe);
}

bool Responder::LearnKey(const ibv_sge& sge, KnownKey* key) {
  return key->Learn(qp_->memory->keys(), sge.lkey, qp_->pd->id,
                    IBV_ACCESS_LOCAL_WRITE, sge.addr, sge.length);
}

// --- Receiver not ready ------------------------------------------------------

Responder::Result Responder::OnNotReady() {
  const int64_t now_ns = qp_->clock->NowNanoseconds();
  // The sender's tries: the first one, and its retries.
  const int64_t limit_ns = RnrTimerNs(min_rnr_timer_) * (peer_rnr_retry_ + 1);
  if (not_ready_since_ns_ == 0) {
    not_ready_since_ns_ = now_ns;
    if (srq_ != nullptr) srq_->AddWaiter(qp_->target);
  }
  if (peer_rnr_retry_ == kRetryForEver) return Result::kNotReady;
  const int64_t deadline_ns = not_ready_since_ns_ + limit_ns;
  if (now_ns < deadline_ns) {
    CompletionChannel* const channel = qp_->recv_cq->channel();
    if (channel != nullptr) channel->WakeAt(deadline_ns);
    return Result::kNotReady;
  }
  Refuse(IBV_WC_RNR_RETRY_EXC_ERR);
  discarding_ = true;
  OnReady();
  return Result::kNotReady;
}

void Responder::OnReady() {
  not_ready_since_ns_ = 0;
  if (srq_ != nullptr) srq_->RemoveWaiter(qp_->target);
}

// --- Inline payload ----------------------------------------------------------

Responder::Result Responder::ReceiveInline(const Packet& packet,
                                           const ReceiveWqe& wqe) {
  const uint32_t bytes = packet.payload_bytes;
  const ibv_sge* const sges = wqe.sges();
  if (wqe.sge_count != 0 && bytes <= sges[0].length) [[likely]] {
    if (bytes != 0) {
      if (!qp_->memory->CheckLocal(qp_->pd, sges[0], IBV_ACCESS_LOCAL_WRITE))
          [[unlikely]] {
        return FailReceive(wqe.wr_id, IBV_WC_LOC_PROT_ERR);
      }
      qp_->link->Read(0, reinterpret_cast<void*>(sges[0].addr), bytes);
    }
  } else {
    const ibv_wc_status status = CheckRoom(sges, wqe.sge_count, bytes);
    if (status != IBV_WC_SUCCESS) return FailReceive(wqe.wr_id, status);
    uint32_t offset = 0;
    ForEachPiece(sges, 0, bytes, [&](std::byte* piece, uint64_t size) {
      qp_->link->Read(offset, piece, static_cast<uint32_t>(size));
      offset += static_cast<uint32_t>(size);
    });
  }
  const uint64_t wr_id = wqe.wr_id;
  Pop();
  return Finish(packet, wr_id, bytes);
}

Responder::Result Responder::ReceiveImmediate(const Packet& packet,
                                              const ReceiveWqe& wqe) {
  uint32_t byte_len;
  if (packet.payload_bytes != sizeof(byte_len)) return Result::kViolation;
  qp_->link->Read(0, &byte_len, sizeof(byte_len));
  if (byte_len > kMaxMessageBytes) return Result::kViolation;
  const uint64_t wr_id = wqe.wr_id;
  Pop();
  return Finish(packet, wr_id, byte_len);
}

ibv_wc_status Responder::CheckRoom(const ibv_sge* sges, uint32_t count,
                                   uint64_t bytes) const {
  if (bytes > TotalBytes(sges, count)) return IBV_WC_LOC_LEN_ERR;
  for (uint32_t i = 0; i < count && bytes != 0; ++i) {
    if (sges[i].length == 0) continue;
    if (!qp_->memory->CheckLocal(qp_->pd, sges[i], IBV_ACCESS_LOCAL_WRITE)) {
      return IBV_WC_LOC_PROT_ERR;
    }
    bytes -= std::min<uint64_t>(bytes, sges[i].length);
  }
  return IBV_WC_SUCCESS;
}

// --- Described payload -------------------------------------------------------

bool Responder::ReceiveDescribed(Link* link, uint64_t word,
                                 uint64_t* budget_bytes, ibv_wc* received) {
  Descriptor pieces[kLineDescriptors];
  const uint32_t count = link->PeekDescribed(word, pieces);
  const ReceiveWqe* const wqe = Front();
  if (count == 0 || wqe == nullptr || wqe->sge_count == 0) [[unlikely]]
    return false;
  const ibv_sge& sge = *wqe->sges();
  if (!MayReceiveInto(sge) || link->rang()) [[unlikely]]
    return false;
  const uint64_t most = std::min<uint64_t>(*budget_bytes, sge.length);
  uint64_t bytes = 0;
  for (const Descriptor* piece = pieces; piece != pieces + count; ++piece) {
    std::byte* from;
    if (piece->bytes > most - bytes ||
        link->Resolve(piece->arena, piece->offset, piece->bytes,
                      /*writable=*/false, &from) != Link::Access::kOk)
        [[unlikely]] {
      return false;
    }
    memory::CopyBytes(reinterpret_cast<std::byte*>(sge.addr) + bytes, from,
                      piece->bytes);
    bytes += piece->bytes;
  }
  // It may have rung while the memory was looked for.
  if (link->rang() || link->PeerClosed()) [[unlikely]]
    return false;
  *budget_bytes -= bytes;
  CompleteSmall(wqe->wr_id, word, static_cast<uint32_t>(bytes), received);
  Pop();
  link->TakeDescribed();
  return true;
}

Responder::Result Responder::Hold(const Packet& packet, const ReceiveWqe& wqe) {
  if (packet.kind == PacketKind::kWriteWithImmediate ||
      packet.payload_bytes % sizeof(Descriptor) != 0 ||
      packet.payload_bytes > sizeof(Held::descriptors)) {
    return Result::kViolation;
  }
  Held& held = held_.emplace();
  held.wr_id = wqe.wr_id;
  held.sge_count = wqe.sge_count;
  std::copy_n(wqe.sges(), wqe.sge_count, held.sges.begin());
  held.descriptor_count = packet.payload_bytes / sizeof(Descriptor);
  qp_->link->Read(0, held.descriptors.data(), packet.payload_bytes);
  held.total_bytes = 0;
  for (uint32_t i = 0; i < held.descriptor_count; ++i) {
    held.total_bytes += held.descriptors[i].bytes;
  }
  held.bytes_done = 0;
  held.descriptor = held.descriptor_offset = 0;
  held.waiting_since_ns = 0;
  if (held.total_bytes > kMaxMessageBytes) {
    held_.reset();
    return Result::kViolation;
  }
  const ibv_wc_status status =
      CheckRoom(held.sges.data(), held.sge_count, held.total_bytes);
  if (status != IBV_WC_SUCCESS) {
    held_.reset();
    return FailReceive(wqe.wr_id, status);
  }
  Pop();
  return Result::kConsumed;
}

Responder::Result Responder::ContinueHeld(const Packet& packet,
                                          uint64_t* budget_bytes) {
  while (held_->bytes_done != held_->total_bytes) {
    if (*budget_bytes == 0) return Result::kMore;
    const Result result = CopyPiece(budget_bytes);
    if (result != Result::kConsumed) return result;
  }
  // From the moment at which the sender's QP left RTS, its memory may hold
  // something else: such a message counts as never arrived, and its receive is
  // flushed with the QP.
  if (qp_->link->PeerClosed()) {
    discarding_ = true;
    qp_->link->Consume();
    return Result::kConsumed;
  }
  const uint64_t wr_id = held_->wr_id;
  const auto byte_len = static_cast<uint32_t>(held_->total_bytes);
  held_.reset();
  return Finish(packet, wr_id, byte_len);
}

Responder::Result Responder::CopyPiece(uint64_t* budget_bytes) {
  Held& held = *held_;
  const Descriptor& descriptor = held.descriptors[held.descriptor];
  const uint64_t bytes = std::min<uint64_t>(
      *budget_bytes, descriptor.bytes - held.descriptor_offset);
  std::byte* from;
  switch (qp_->link->Resolve(descriptor.arena,
                             descriptor.offset + held.descriptor_offset, bytes,
                             /*writable=*/false, &from)) {
    case Link::Access::kInvalid:
      return Result::kViolation;
    case Link::Access::kNotYet: {
      const int64_t now_ns = qp_->clock->NowNanoseconds();
      if (held.waiting_since_ns == 0) held.waiting_since_ns = now_ns;
      return now_ns - held.waiting_since_ns > kAnnouncementLimitNs
                 ? Result::kViolation
                 : Result::kNotYet;
    }
    case Link::Access::kOk:
      break;
  }
  Scatter(held.sges.data(), held.bytes_done, from, bytes);
  held.bytes_done += bytes;
  *budget_bytes -= bytes;
  held.descriptor_offset += static_cast<uint32_t>(bytes);
  if (held.descriptor_offset == descriptor.bytes) {
    ++held.descriptor;
    held.descriptor_offset = 0;
  }
  return Result::kConsumed;
}

// --- Completing --------------------------------------------------------------

Responder::Result Responder::Finish(const Packet& packet, uint64_t wr_id,
                                    uint32_t byte_len) {
  ibv_wc completion = {};
  completion.wr_id = wr_id;
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = byte_len;
  completion.qp_num = qp_->qp_num;
  completion.src_qp = qp_->link->peer_qp_num();
  switch (packet.kind) {
    case PacketKind::kSendWithImmediate:
      completion.wc_flags = IBV_WC_WITH_IMM;
      completion.imm_data = packet.immediate;
      break;
    case PacketKind::kWriteWithImmediate:
      completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
      completion.wc_flags = IBV_WC_WITH_IMM;
      completion.imm_data = packet.immediate;
      break;
    case PacketKind::kSendWithInvalidate:
      // The data is in place and the sender is answered before the key is
      // looked at; a wrong key is this side's error only (IBTA, 9.9.6.3, class
      // J).
      qp_->link->Consume();
      if (!qp_->memory->Invalidate(packet.immediate, qp_->pd, qp_->qp_num)) {
        completion.status = IBV_WC_REM_INV_REQ_ERR;
        qp_->recv_cq->Push(completion, qp_->target, 0, packet.solicited);
        return Result::kFailed;
      }
      completion.wc_flags = IBV_WC_WITH_INV;
      completion.invalidated_rkey = packet.immediate;
      qp_->recv_cq->Push(completion, qp_->target, 0, packet.solicited);
      return Result::kConsumed;
    default:
      break;
  }
  qp_->link->Consume();
  qp_->recv_cq->Push(completion, qp_->target, 0, packet.solicited);
  return Result::kConsumed;
}

Responder::Result Responder::FailReceive(uint64_t wr_id, ibv_wc_status status) {
  Pop();
  Refuse(status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR
                                      : IBV_WC_REM_OP_ERR);
  discarding_ = true;
  ibv_wc completion = {};
  completion.wr_id = wr_id;
  completion.status = status;
  completion.opcode = IBV_WC_RECV;
  completion.qp_num = qp_->qp_num;
  completion.src_qp = qp_->link->peer_qp_num();
  qp_->recv_cq->Push(completion, qp_->target, 0, /*solicited=*/true);
  return Result::kFailed;
}

void Responder::Refuse(ibv_wc_status status) {
  // What was consumed counts as arrived: the refused one is the next.
  qp_->link->Acknowledge();
  Packet packet;
  packet.kind = PacketKind::kRefused;
  packet.immediate = status;
  qp_->link->Send(packet, nullptr, 0);
  qp_->link->Wake(/*solicited=*/true);
}

void Responder::CompleteFlushed(uint64_t wr_id) {
  ibv_wc completion = {};
  completion.wr_id = wr_id;
  completion.status = IBV_WC_WR_FLUSH_ERR;
  completion.opcode = IBV_WC_RECV;
  completion.qp_num = qp_->qp_num;
  qp_->recv_cq->Push(completion, qp_->target, 0, /*solicited=*/true);
}

void Responder::Flush() {
  if (held_) CompleteFlushed(held_->wr_id);
  held_.reset();
  while (const ReceiveWqe* wqe = queue_.Front()) {
    const uint64_t wr_id = wqe->wr_id;
    queue_.Pop();
    CompleteFlushed(wr_id);
  }
  OnReady();
}

void Responder::Reset() {
  held_.reset();
  queue_.Clear();
  discarding_ = false;
  OnReady();
}

}  // namespace rdma::soft
