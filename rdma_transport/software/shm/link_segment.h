// The memory of one direction of a connection: a ring of packets and a few
// control lines, written by one side only and mapped read-only by the other.
//
//   line 0   closed, access        written when states change
//   line 1   consumed              written after each batch taken from the peer
//   line 2   acknowledge_at        written with signaled work requests
//   line 3   writing_key           written around each WRITE
//   line 4.. the ring
//   behind it a JointReadBoard
//
// What a line of the ring is, and how packets lie in it: engine/packet_ring.h.
//
// Thread rule: the fields are atomics; one writer.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_SEGMENT_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_SEGMENT_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "rdma_transport/software/engine/joint_read_board.h"
#include "rdma_transport/software/engine/packet_ring.h"

namespace rdma::soft {

inline constexpr uint32_t kMinRingLines = 64;
inline constexpr uint32_t kMaxRingLines = 256;

struct alignas(kCacheLineBytes) LinkControl {
  // The writer's QP left RTS: the memory that its packets describe may hold
  // something else.
  std::atomic<uint32_t> closed;
  // ibv_access_flags that the writer's QP admits.
  std::atomic<uint32_t> access;
  std::byte unused0[56];
  // Lines that the writer took from the other side's ring.
  std::atomic<uint64_t> consumed;
  std::byte unused1[56];
  // Where the writer sleeps, it wants to be woken once the other side consumed
  // this many of its lines; 0: never.
  std::atomic<uint64_t> acknowledge_at;
  std::byte unused2[56];
  // The rkey that the writer is writing under; 0: none.
  std::atomic<uint32_t> writing_key;
  std::byte unused3[60];
};
static_assert(sizeof(LinkControl) == 4 * kCacheLineBytes);
static_assert(offsetof(LinkControl, consumed) == 1 * kCacheLineBytes);
static_assert(offsetof(LinkControl, acknowledge_at) == 2 * kCacheLineBytes);
static_assert(offsetof(LinkControl, writing_key) == 3 * kCacheLineBytes);

inline constexpr size_t LinkSegmentBytes(uint32_t ring_lines) {
  return sizeof(LinkControl) + size_t{ring_lines} * sizeof(RingLine) +
         sizeof(JointReadBoard);
}

// Room for the send queue's requests of up to two lines each.
inline uint32_t RingLinesFor(uint32_t max_send_wr) {
  return std::clamp(std::bit_ceil(2 * max_send_wr), kMinRingLines,
                    kMaxRingLines);
}

// Where in the ring the first packet of the QP with this number lies. Idle
// connections have each sent about as much: were all to begin with line 0, the
// lines that who polls them looks at would lie at the same place of a page
// each, for which a cache has room for few. On the first page, which
// LinkControl is on, with what a connection begins with.
inline constexpr uint32_t FirstRingLineOf(uint32_t qp_num) {
  constexpr uint32_t kChoices = 48;
  static_assert(kChoices <= kMinRingLines);
  return qp_num % kChoices;
}

inline bool IsValidRingSize(uint32_t lines) {
  return std::has_single_bit(lines) && lines >= kMinRingLines &&
         lines <= kMaxRingLines;
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_SEGMENT_H_
