#include "rdma_transport/software/engine/joint_reader.h"

#include <algorithm>
#include <atomic>
#include <memory>

namespace rdma::soft {

bool JointReader::Takes(const QpContext& qp, const SendWqe& wqe,
                        const ibv_sge* sges) {
  KeyRange range;
  if (wqe.opcode != IBV_WR_RDMA_READ || wqe.sge_count != 1 ||
      qp.link->own_board() == nullptr ||
      !qp.memory->FindLocal(qp.pd, sges[0], IBV_ACCESS_LOCAL_WRITE, &range) ||
      (range.access & kJointKey) == 0) {
    return false;
  }
  // Of short READs, too: before the peer gets the arena for any other reason.
  const std::shared_ptr<Arena> arena =
      qp.memory->arenas().FindById(range.arena);
  return arena != nullptr && arena->GiveTo(qp.link->serial()) &&
         wqe.byte_len >= kFewestBytes;
}

void JointReader::Offer(uint32_t index, const SendWqe& wqe, const ibv_sge& sge,
                        SendDetail* detail) {
  KeyRange range;
  if (used_ == kJointSlots || link_->PeerSleeps() ||
      (link_->peer_access() & IBV_ACCESS_REMOTE_READ) == 0 ||
      !qp_->memory->FindLocal(qp_->pd, sge, IBV_ACCESS_LOCAL_WRITE, &range) ||
      !link_->Announce(range.arena) || !TellPeer()) {
    return;
  }
  JointReadBoard& board = *link_->own_board();
  for (uint32_t i = 0; i < kJointSlots; ++i) {
    if (slots_[i].state != State::kFree) continue;
    const uint64_t offset = detail->bytes_done;
    if (offset == wqe.byte_len) return;
    const auto bytes = static_cast<uint32_t>(
        std::min<uint64_t>(PieceBytes(wqe.byte_len), wqe.byte_len - offset));
    slots_[i].piece = {index, offset, bytes};
    slots_[i].number = ++last_number_;
    SetState(i, State::kOffered);
    JointPiece& piece = board.pieces[i];
    piece.from.store(detail->remote_address + offset,
                     std::memory_order_relaxed);
    piece.to.store(sge.addr + offset, std::memory_order_relaxed);
    piece.rkey.store(detail->rkey, std::memory_order_relaxed);
    piece.lkey.store(sge.lkey, std::memory_order_relaxed);
    piece.bytes.store(bytes, std::memory_order_relaxed);
    piece.past_caches.store(wqe.passes_caches(), std::memory_order_relaxed);
    board.offers[i].store(EncodeOffer(last_number_, /*withdrawn=*/false),
                          std::memory_order_release);
    detail->bytes_done += bytes;
    ++detail->pieces_out;
  }
}

// False: there is no room to tell it.
bool JointReader::TellPeer() {
  if (reading_) return true;
  link_->own_board()->reading.store(1, std::memory_order_relaxed);
  // Where it has not taken the last packet yet that one tells of this, too.
  if (told_position_ == 0 || link_->acknowledged() >= told_position_) {
    Packet packet;
    packet.kind = PacketKind::kJointRead;
    // The peer is awake: nobody rings.
    const uint64_t position = link_->Send(packet, nullptr, 0);
    if (position == 0) return false;
    told_position_ = position;
  }
  reading_ = true;
  return true;
}

JointAnswer JointReader::Answer(uint32_t slot) const {
  return AnswerTo(slots_[slot].number, link_->peer_board()->answers[slot].load(
                                           std::memory_order_acquire));
}

bool JointReader::HasCome(uint32_t slot) {
  const State state = slots_[slot].state;
  if (state != State::kOffered && state != State::kClaimed) return false;
  switch (Answer(slot)) {
    case JointAnswer::kNone:
      return false;
    case JointAnswer::kClaimed:
      SetState(slot, State::kClaimed);
      return false;
    case JointAnswer::kDone:
      return true;
    case JointAnswer::kDeclined:
      SetState(slot, State::kOurs);
      return false;
  }
  return false;
}

void JointReader::Withdraw(uint32_t slot) {
  link_->own_board()->offers[slot].store(
      EncodeOffer(slots_[slot].number, /*withdrawn=*/true),
      std::memory_order_relaxed);
  // Either the peer sees that, or we see that it has claimed the piece.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  SetState(slot,
           Answer(slot) == JointAnswer::kNone ? State::kOurs : State::kClaimed);
}

const JointReader::Piece* JointReader::TakeBack() {
  while (unclaimed_ != 0) {
    // What is ours, before the newest offer: the peer takes the oldest first.
    const auto rank = [](const Slot& slot) {
      if (slot.state == State::kOurs) return UINT64_MAX;
      return slot.state == State::kOffered ? slot.number : 0;
    };
    const auto best = std::max_element(
        slots_.begin(), slots_.end(),
        [rank](const Slot& a, const Slot& b) { return rank(a) < rank(b); });
    if (best->state == State::kOurs) return &best->piece;
    Withdraw(static_cast<uint32_t>(best - slots_.begin()));
  }
  return nullptr;
}

void JointReader::Drop(const Piece* piece) {
  for (uint32_t i = 0; i < kJointSlots; ++i) {
    if (&slots_[i].piece == piece) Free(i);
  }
}

void JointReader::SetState(uint32_t slot, State state) {
  const auto is_unclaimed = [](State s) {
    return s == State::kOffered || s == State::kOurs;
  };
  const State before = slots_[slot].state;
  used_ += (state != State::kFree) - (before != State::kFree);
  unclaimed_ += is_unclaimed(state) - is_unclaimed(before);
  slots_[slot].state = state;
}

void JointReader::Rest() {
  if (!reading_) return;
  reading_ = false;
  link_->own_board()->reading.store(0, std::memory_order_relaxed);
}

}  // namespace rdma::soft
