// The reader's part of READs that both CPUs copy: pieces of what is not read
// yet are on offer to the peer, which takes them if it polls. What nobody took
// the reader takes back, once it has nothing else to read: so it never waits
// for more than the piece that the peer is copying.
//
// Only READs into memory that was allocated for that (MemoryUse::kJointReads)
// are: the peer writes there itself.
//
//   if (reader.Takes(wqe, sges)) ...                   // when the READ starts
//   reader.Offer(index, wqe, detail, sge);             // moves bytes_done on
//   reader.Collect([](uint32_t index) { ... });        // a piece of it is
//   there while (const JointReader::Piece* piece = reader.TakeBack()) ...
//   Drop(piece)
//
// Thread rule: as the QP.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_JOINT_READER_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_JOINT_READER_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "rdma_transport/software/engine/joint_read_board.h"
#include "rdma_transport/software/engine/qp_context.h"
#include "rdma_transport/software/engine/send_queue.h"

namespace rdma::soft {

class JointReader {
 public:
  struct Piece {
    uint32_t index = 0;   // of the READ's slot in the send queue
    uint64_t offset = 0;  // into the READ
    uint32_t bytes = 0;
  };

  // READs of less are over before the peer has seen an offer.
  static constexpr uint32_t kFewestBytes = 256 << 10;
  // A quarter of the READ, in pages: an even number keeps both CPUs equally
  // long, and few cost little to pass on (docs/large_messages.md).
  static constexpr uint32_t PieceBytes(uint32_t read_bytes) {
    constexpr uint64_t kPageBytes = 4096;
    const uint64_t pages = (read_bytes + 4 * kPageBytes - 1) / (4 * kPageBytes);
    return static_cast<uint32_t>(
        std::min<uint64_t>(pages * kPageBytes, kMostJointPieceBytes));
  }

  // REQUIRES: the QP is connected, and stays so.
  explicit JointReader(const QpContext* qp) : qp_(qp), link_(qp->link) {}

  // Whether the READ goes to memory of this link's joint READs. The first link
  // that asks for an arena has it for good.
  static bool Takes(const QpContext& qp, const SendWqe& wqe,
                    const ibv_sge* sges);

  // Offers what comes next of a READ, as far as there are free slots, and the
  // peer is awake.
  void Offer(uint32_t index, const SendWqe& wqe, const ibv_sge& sge,
             SendDetail* detail);

  // Calls done(index of the READ) for each piece that the peer has copied.
  template <typename Done>
  void Collect(Done done) {
    for (uint32_t i = 0; i < kJointSlots && used_ != 0; ++i) {
      if (HasCome(i)) {
        done(slots_[i].piece.index);
        Free(i);
      }
    }
  }

  // A piece that the peer does not copy, the newest; null: there is none. It
  // stays until it is dropped.
  const Piece* TakeBack();
  void Drop(const Piece* piece);

  // Whether there is a piece that has not come.
  bool waits() const { return used_ != 0; }
  // Whether TakeBack may find something.
  bool MayTakeBack() const { return unclaimed_ != 0; }
  // Nothing more is to be read for now. REQUIRES: no piece is left.
  void Rest();

 private:
  enum class State : uint8_t {
    kFree,
    kOffered,
    kClaimed,  // the peer copies it
    kOurs,     // declined or taken back
  };
  struct Slot {
    Piece piece;
    uint64_t number = 0;
    State state = State::kFree;
  };

  bool TellPeer();
  bool HasCome(uint32_t slot);
  void SetState(uint32_t slot, State state);
  void Free(uint32_t slot) { SetState(slot, State::kFree); }
  JointAnswer Answer(uint32_t slot) const;
  void Withdraw(uint32_t slot);

  const QpContext* const qp_;
  Link* const link_;
  std::array<Slot, kJointSlots> slots_;
  uint64_t last_number_ = 0;
  uint64_t told_position_ = 0;  // of the last kJointRead; 0: none
  uint32_t used_ = 0;           // slots that are not free
  uint32_t unclaimed_ = 0;      // of them, offered or ours
  bool reading_ = false;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_JOINT_READER_H_
