// The memory of one direction of a connection: a ring of packets and a few
// control lines, written by one side only and mapped read-only by the other.
//
//   line 0   closed, access        written when states change
//   line 1   consumed              written after each batch taken from the peer
//   line 2   acknowledge_at        written with signaled work requests
//   line 3   writing_key           written around each WRITE
//   line 4.. the ring
//
// A line of the ring is a cache line: a word (engine/packet.h), and 56 bytes of
// payload.
//
// Each line of a packet carries its own word, so that whatever lay there before
// can never look like a packet of this lap. The first line's word is written
// last, with release order: once its lap is right, all of the packet is there.
//
// Thread rule: the fields are atomics; one writer.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_SEGMENT_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_SEGMENT_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rdma_transport/software/engine/packet.h"

namespace rdma::soft {

inline constexpr size_t kCacheLineBytes = 64;
inline constexpr uint32_t kLinePayloadBytes = 56;
inline constexpr uint32_t kMinRingLines = 64;
inline constexpr uint32_t kMaxRingLines = 256;

struct RingLine {
  std::atomic<uint64_t> word;
  std::byte payload[kLinePayloadBytes];
};
static_assert(sizeof(RingLine) == kCacheLineBytes);

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
  return sizeof(LinkControl) + size_t{ring_lines} * sizeof(RingLine);
}

// Room for the send queue's requests of up to two lines each.
inline uint32_t RingLinesFor(uint32_t max_send_wr) {
  return std::clamp(std::bit_ceil(2 * max_send_wr), kMinRingLines,
                    kMaxRingLines);
}

inline bool IsValidRingSize(uint32_t lines) {
  return std::has_single_bit(lines) && lines >= kMinRingLines &&
         lines <= kMaxRingLines;
}

// Lines that a packet takes.
inline uint32_t LinesFor(uint32_t payload_bytes) {
  return payload_bytes <= kLinePayloadBytes
             ? 1
             : (payload_bytes + kLinePayloadBytes - 1) / kLinePayloadBytes;
}
static_assert(kMaxPayloadBytes <= UINT16_MAX);

// Copies at most a line's payload: moves that overlap, no call.
inline void CopyLinePayload(std::byte* to, const std::byte* from,
                            uint32_t bytes) {
  const auto copy_ends = [&]<size_t kSize>() {
    std::memcpy(to, from, kSize);
    std::memcpy(to + bytes - kSize, from + bytes - kSize, kSize);
  };
  if (bytes >= 32) {
    copy_ends.operator()<32>();
  } else if (bytes >= 16) {
    copy_ends.operator()<16>();
  } else if (bytes >= 8) {
    copy_ends.operator()<8>();
  } else if (bytes >= 4) {
    copy_ends.operator()<4>();
  } else if (bytes >= 2) {
    copy_ends.operator()<2>();
  } else if (bytes == 1) {
    *to = *from;
  }
}
static_assert(kLinePayloadBytes <= 64);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_SEGMENT_H_
