#include "rdma_transport/software/engine/read_helper.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include "memory/copy_bytes.h"
#include "rdma_transport/software/engine/joint_read_board.h"
#include "rdma_transport/software/engine/remote_access.h"

namespace rdma::soft {

// A piece, as it was read once.
struct ReadHelper::Copy {
  explicit Copy(const JointPiece& piece)
      : from_address(piece.from.load(std::memory_order_relaxed)),
        to_address(piece.to.load(std::memory_order_relaxed)),
        rkey(piece.rkey.load(std::memory_order_relaxed)),
        lkey(piece.lkey.load(std::memory_order_relaxed)),
        bytes(piece.bytes.load(std::memory_order_relaxed)),
        passes_caches(piece.past_caches.load(std::memory_order_relaxed) != 0) {}

  const uint64_t from_address;
  const uint64_t to_address;
  const uint32_t rkey;
  const uint32_t lkey;
  const uint32_t bytes;
  const bool passes_caches;

  // Set by Prepare.
  KeyRange source_range;
  std::shared_ptr<Arena> source;  // stays mapped as long as this
  std::byte* to = nullptr;

  const std::byte* from() const {
    return source->base() + source_range.OffsetOf(from_address);
  }
};

// Of a turn's budget: a turn is not to be of thousands of short pieces.
constexpr uint32_t kFewestBytesCharged = 16 << 10;

void ReadHelper::Help(uint64_t* budget_bytes) {
  busy_ = false;
  while (*budget_bytes != 0) {
    uint64_t offer = 0;
    const uint32_t slot = FindOffer(&offer);
    if (slot == kJointSlots) {
      active_ =
          qp_->link->peer_board()->reading.load(std::memory_order_relaxed) != 0;
      break;
    }
    *budget_bytes -= std::min(*budget_bytes, Take(slot, offer));
    busy_ = true;
  }
  // It may sleep until the last piece has come.
  if (busy_) qp_->link->WakeReader();
}

uint32_t ReadHelper::FindOffer(uint64_t* offer) const {
  const JointReadBoard& theirs = *qp_->link->peer_board();
  const JointReadBoard& own = *qp_->link->own_board();
  uint32_t oldest = kJointSlots;
  for (uint32_t i = 0; i < kJointSlots; ++i) {
    const uint64_t word = theirs.offers[i].load(std::memory_order_acquire);
    const uint64_t number = word >> 1;
    const bool is_withdrawn = (word & 1) != 0;
    if (number == 0 || number > kMostJointOffers || is_withdrawn ||
        AnswerTo(number, own.answers[i].load(std::memory_order_relaxed)) !=
            JointAnswer::kNone ||
        (oldest != kJointSlots && word > *offer)) {
      continue;
    }
    oldest = i;
    *offer = word;
  }
  return oldest;
}

uint64_t ReadHelper::Take(uint32_t slot, uint64_t offer) const {
  const JointReadBoard& theirs = *qp_->link->peer_board();
  JointReadBoard& own = *qp_->link->own_board();
  const uint64_t number = offer >> 1;
  Copy copy(theirs.pieces[slot]);
  own.answers[slot].store(EncodeAnswer(number, JointAnswer::kClaimed),
                          std::memory_order_relaxed);
  JointAnswer answer = JointAnswer::kDeclined;
  {
    // Its fence is the one between the answer and the look at the offer, too.
    const WritingScope writing(qp_->link, copy.lkey);
    if (theirs.offers[slot].load(std::memory_order_acquire) == offer &&
        Prepare(&copy)) {
      (copy.passes_caches ? memory::CopyPastCaches : memory::CopyBytes)(
          copy.to, copy.from(), copy.bytes);
      // What was revoked meanwhile may have held anything.
      if (qp_->memory->keys().StillValid(copy.source_range)) {
        answer = JointAnswer::kDone;
      }
    }
  }
  own.answers[slot].store(EncodeAnswer(number, answer),
                          std::memory_order_release);
  return std::max(answer == JointAnswer::kDone ? copy.bytes : 0,
                  kFewestBytesCharged);
}

// Whether the piece may be copied.
bool ReadHelper::Prepare(Copy* copy) const {
  Link& link = *qp_->link;
  if (link.PeerClosed() || copy->bytes == 0 ||
      copy->bytes > kMostJointPieceBytes) {
    return false;
  }
  KeyRange& source = copy->source_range;
  if (!qp_->memory->keys().Find(copy->rkey, &source) ||
      !source.Allows(qp_->pd->id, qp_->qp_num, IBV_ACCESS_REMOTE_READ,
                     copy->from_address, copy->bytes)) {
    return false;
  }
  copy->source = qp_->memory->arenas().FindById(source.arena);
  KeyRange target;
  return copy->source != nullptr &&
         link.peer_keys().Find(copy->lkey, &target) &&
         target.Allows(link.peer_pd(), 0, kJointKey, copy->to_address,
                       copy->bytes) &&
         link.Resolve(target.arena, target.OffsetOf(copy->to_address),
                      copy->bytes, /*writable=*/true,
                      &copy->to) == Link::Access::kOk;
}

}  // namespace rdma::soft
