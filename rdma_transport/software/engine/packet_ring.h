// A ring of packets in memory that one side writes and the other one reads:
// each side's end of it.
//
// A line of the ring is a cache line: a word (packet.h), and 56 bytes of
// payload.
//
// Each line of a packet carries its own word, so that whatever lay there before
// can never look like a packet of this lap. The first line's word is written
// last, with release order: once its lap is right, all of the packet is there.
//
// A small call's packets take a line or two. Those are written and taken by
// straight-line code, in the caller.
//
//   if (outgoing.HasRoomFor(kShortLines)) outgoing.PutShort(tag, data, bytes);
//   if (uint64_t word; incoming.HasPacket(&word))
//     if (uint32_t bytes; IsSmallPacket(word, &tag, &bytes))
//       incoming.TakeSmall(buffer, bytes);
//
// Thread rule: one thread at a time for each end. A reader checks what it
// reads: the writer may write anything there, at any time.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_RING_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_RING_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rdma_transport/software/engine/packet.h"

namespace rdma::soft {

inline constexpr size_t kCacheLineBytes = 64;
inline constexpr uint32_t kLinePayloadBytes = 56;

struct RingLine {
  std::atomic<uint64_t> word;
  std::byte payload[kLinePayloadBytes];
};
static_assert(sizeof(RingLine) == kCacheLineBytes);

// Lines that a packet takes.
inline uint32_t LinesFor(uint32_t payload_bytes) {
  return payload_bytes <= kLinePayloadBytes
             ? 1
             : (payload_bytes + kLinePayloadBytes - 1) / kLinePayloadBytes;
}
static_assert(kMaxPayloadBytes <= UINT16_MAX);

// How often a ring of 1 << shift lines was gone around at a position, as words
// have it.
inline uint64_t RingLap(uint64_t position, uint32_t shift) {
  return ((position >> shift) + 1) & kLapMask;
}

// What straight-line code moves.
inline constexpr uint32_t kShortLines = 2;
inline constexpr uint32_t kShortBytes = kShortLines * kLinePayloadBytes;

// Lines that packets which end a connection may use, and others may not: one
// for each of kRefused, kGone and kAccessFault.
inline constexpr uint32_t kReservedLines = 3;

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

// The writer's end.
class OutgoingRing {
 public:
  // Without lines: there is room for nothing.
  OutgoingRing() = default;
  // REQUIRES: `count` is a power of two, and more than kReservedLines.
  OutgoingRing(RingLine* lines, uint32_t count)
      : lines_(lines),
        mask_(count - 1),
        shift_(static_cast<uint32_t>(std::countr_zero(count))) {
    SetConsumed(0);
  }

  // Lines that were written, ever: packets' positions count them.
  uint64_t position() const { return position_; }

  // The reader took so many lines, ever.
  void SetConsumed(uint64_t lines) {
    room_end_ = lines + mask_ + 1 - kReservedLines;
  }
  // Whether there is room for so many lines, as far as is known, and without
  // those that are reserved.
  bool HasRoomFor(uint32_t lines) const {
    return position_ + lines <= room_end_;
  }
  bool HasRoomForLast(uint32_t lines) const {
    return position_ + lines <= room_end_ + kReservedLines;
  }

  // Writes a small packet (packet.h).
  // REQUIRES: bytes <= kShortBytes. HasRoomFor(kShortLines).
  void PutShort(uint32_t immediate, const std::byte* data, uint32_t bytes) {
    // In locals, for a compiler takes it that storing bytes may change members.
    RingLine* const lines = lines_;
    const uint32_t mask = mask_;
    const uint32_t shift = shift_;
    const uint64_t position = position_;
    RingLine& first = lines[position & mask];
    uint64_t end = position + 1;
    if (bytes > kLinePayloadBytes) {
      RingLine& second = lines[end & mask];
      CopyLinePayload(second.payload, data + kLinePayloadBytes,
                      bytes - kLinePayloadBytes);
      second.word.store(RingLap(end, shift), std::memory_order_relaxed);
      // The first line last, and in one go: the peer reads it again and again,
      // and takes it away between two writes that are far apart.
      std::memcpy(first.payload, data, kLinePayloadBytes);
      ++end;
    } else {
      CopyLinePayload(first.payload, data, bytes);
    }
    first.word.store(SmallPacketWord(immediate, bytes, RingLap(position, shift)),
                     std::memory_order_release);
    position_ = end;
  }

  // The payload of the next packet: in one piece, or piece by piece, each at
  // the offset that the last one returned, from 0.
  void WriteRun(const std::byte* data, uint32_t bytes);
  uint32_t WritePiece(uint32_t offset, const std::byte* data, uint32_t bytes);
  // Makes a packet of what was written.
  void Publish(const Packet& packet);

  // After a packet of so many bytes. What the reader has read is in its cache,
  // and the next packet is likely to be as long as this one: its lines come
  // back while the reader is busy, and not one after the other when they are
  // written.
  void FetchBack(uint32_t bytes) const;

 private:
  RingLine& LineAt(uint64_t position) const {
    return lines_[position & mask_];
  }
  // A continuation line's word is of its own lap, which may be the next one.
  void Seal(uint64_t position) {
    LineAt(position).word.store(RingLap(position, shift_),
                                std::memory_order_relaxed);
  }

  RingLine* lines_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t shift_ = 0;
  uint64_t position_ = 0;
  uint64_t room_end_ = 0;  // positions before it may be written
};

// The reader's end.
class IncomingRing {
 public:
  // Without lines: nothing else may be called.
  IncomingRing() = default;
  // REQUIRES: `count` is a power of two.
  IncomingRing(const RingLine* lines, uint32_t count)
      : lines_(lines),
        mask_(count - 1),
        shift_(static_cast<uint32_t>(std::countr_zero(count))) {
    Advance(0);
  }

  // Lines that were taken, ever.
  uint64_t position() const { return position_; }

  // Whether there is a packet, and the word that it begins with. Cheap: one
  // load of one cache line.
  bool HasPacket(uint64_t* word) const {
    *word = next_->word.load(std::memory_order_acquire);
    return (*word & kLapMask) == lap_;
  }
  // Has the cache fetch anew what a small packet has beside its first line.
  void FetchSecondLine() const {
    __builtin_prefetch(&lines_[(position_ + 1) & mask_]);
  }

  // Copies the next packet's payload, as much as its word says that it has.
  // REQUIRES: bytes <= kMaxPayloadBytes.
  void TakeSmall(std::byte* out, uint32_t bytes) {
    if (bytes > kShortBytes) [[unlikely]] {
      ReadRun(position_, out, bytes);
      Advance(LinesFor(bytes));
      return;
    }
    // See PutShort.
    const RingLine* const lines = lines_;
    const uint32_t mask = mask_;
    const uint32_t shift = shift_;
    const RingLine* const first = next_;
    uint64_t end = position_ + 1;
    if (bytes > kLinePayloadBytes) {
      std::memcpy(out, first->payload, kLinePayloadBytes);
      CopyLinePayload(out + kLinePayloadBytes, lines[end & mask].payload,
                      bytes - kLinePayloadBytes);
      ++end;
    } else {
      CopyLinePayload(out, first->payload, bytes);
    }
    position_ = end;
    next_ = &lines[end & mask];
    lap_ = RingLap(end, shift);
  }

  // Copies [offset, offset + bytes) of the next packet's payload.
  void Read(uint32_t offset, std::byte* out, uint32_t bytes) const;
  void Advance(uint32_t lines) {
    position_ += lines;
    next_ = &lines_[position_ & mask_];
    lap_ = RingLap(position_, shift_);
  }

 private:
  void ReadRun(uint64_t position, std::byte* out, uint32_t bytes) const;

  const RingLine* next_ = nullptr;
  uint64_t lap_ = 0;  // of the next line, as its word has it
  const RingLine* lines_ = nullptr;
  uint32_t mask_ = 0;
  uint32_t shift_ = 0;
  uint64_t position_ = 0;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_RING_H_
