// What two connected QPs write for each other while both copy parts of the same
// READ: the one that reads offers pieces, its peer takes some of them.
//
// Each side has a board of its own in memory that only it writes. Of a piece
// the reader may think better of it, and the peer may take it at the same
// moment. Both first say so and then, behind a full fence, look at what the
// other one said; so one of them at least sees both, and it is the peer who
// yields:
//
//   reader  offers[i] = number << 1             here is a piece
//   peer    answers[i] = number << 2 | kClaimed
//           offers[i] as before? it copies, then kDone; else kDeclined
//   reader  offers[i] = number << 1 | 1         takes it back: it is the
//           answers[i] is of another number?    reader's; else the reader waits
//                                               for kDone or kDeclined
//
// Thread rule: the fields are atomics; one writer.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_JOINT_READ_BOARD_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_JOINT_READ_BOARD_H_

#include <atomic>
#include <cstdint>

namespace rdma::soft {

// What may be on offer at a time.
inline constexpr uint32_t kJointSlots = 8;
// A piece has no more, which takes a CPU 10 to 25 us: a poller's turn copies as
// much of any other READ.
inline constexpr uint32_t kMostJointPieceBytes = 256 << 10;

// Their numbers begin with 1, and fit into an answer.
inline constexpr uint64_t kMostJointOffers = UINT64_MAX >> 2;

enum class JointAnswer : uint8_t { kNone, kClaimed, kDone, kDeclined };

// Addresses are of the process whose memory it is.
struct alignas(64) JointPiece {
  std::atomic<uint64_t> from;  // the peer's memory, by its rkey
  std::atomic<uint64_t> to;    // the reader's, by its lkey
  std::atomic<uint32_t> rkey;
  std::atomic<uint32_t> lkey;
  std::atomic<uint32_t> bytes;
  std::atomic<uint32_t> past_caches;
};

struct alignas(64) JointReadBoard {
  // As the reader.
  std::atomic<uint64_t> offers[kJointSlots];
  // As the peer.
  std::atomic<uint64_t> answers[kJointSlots];
  // As the reader: more offers may come. PacketKind::kJointRead follows when it
  // begins.
  std::atomic<uint32_t> reading;
  JointPiece pieces[kJointSlots];
};
static_assert(sizeof(JointReadBoard) == 64 * (3 + kJointSlots));

inline uint64_t EncodeOffer(uint64_t number, bool withdrawn) {
  return number << 1 | (withdrawn ? 1 : 0);
}
inline uint64_t EncodeAnswer(uint64_t number, JointAnswer answer) {
  return number << 2 | static_cast<uint64_t>(answer);
}
// What `word` says of the offer with this number.
inline JointAnswer AnswerTo(uint64_t number, uint64_t word) {
  return word >> 2 == number ? static_cast<JointAnswer>(word & 3)
                             : JointAnswer::kNone;
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_JOINT_READ_BOARD_H_
