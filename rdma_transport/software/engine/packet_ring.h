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
// straight-line code, in the caller, but where they go around the ring's end.
//
//   if (outgoing.MayPutShort()) outgoing.PutShort(tag, data, bytes);
//   if (uint64_t word; incoming.HasSmallPacket(&word))
//     if (PayloadBytesOf(word) <= sizeof(buffer))
//       incoming.TakeSmall(buffer, PayloadBytesOf(word));
//
// Thread rule: one thread at a time for each end. A reader checks what it
// reads: the writer may write anything there, at any time.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_RING_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_RING_H_

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rdma_transport/cache_lines.h"
#include "rdma_transport/software/engine/packet.h"

namespace rdma::soft {

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

inline uint64_t NextLap(uint64_t lap) { return (lap + 1) & kLapMask; }

// As many as fit into one.
inline constexpr uint32_t kLineDescriptors =
    kLinePayloadBytes / sizeof(Descriptor);

// What straight-line code moves.
inline constexpr uint32_t kShortLines = 2;
inline constexpr uint32_t kShortBytes = kShortLines * kLinePayloadBytes;

// Lines that packets which end a connection may use, and others may not: one
// for each of kRefused, kGone and kAccessFault.
inline constexpr uint32_t kReservedLines = 3;

// Copies kSize to 2 * kSize bytes, by moves that overlap.
template <size_t kSize>
void CopyEnds(std::byte* to, const std::byte* from, size_t bytes) {
  std::memcpy(to, from, kSize);
  std::memcpy(to + bytes - kSize, from + bytes - kSize, kSize);
}
// Copies less than 16 bytes.
inline void CopyFew(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes >= 8) {
    CopyEnds<8>(to, from, bytes);
  } else if (bytes >= 4) {
    CopyEnds<4>(to, from, bytes);
  } else if (bytes >= 2) {
    CopyEnds<2>(to, from, bytes);
  } else if (bytes == 1) {
    *to = *from;
  }
}

// Copies at most a line's payload.
inline void CopyLinePayload(std::byte* to, const std::byte* from,
                            size_t bytes) {
  if (bytes >= 32) {
    CopyEnds<32>(to, from, bytes);
  } else if (bytes >= 16) {
    CopyEnds<16>(to, from, bytes);
  } else {
    CopyFew(to, from, bytes);
  }
}
static_assert(kLinePayloadBytes <= 64);

// The writer's end.
class OutgoingRing {
 public:
  // Without lines: there is room for nothing.
  OutgoingRing() = default;
  // The first packet goes to lines[first], as the reader has it.
  // REQUIRES: count > kReservedLines, first < count.
  OutgoingRing(RingLine* lines, uint32_t count, uint32_t first = 0)
      : lines_(lines), end_(lines + count), next_(lines + first) {
    SetConsumed(0);
  }

  // Lines that were written, ever: packets' positions count them.
  uint64_t position() const { return position_; }

  // The reader took so many lines, ever.
  void SetConsumed(uint64_t lines) {
    room_end_ = lines + static_cast<uint64_t>(end_ - lines_) - kReservedLines;
  }
  // Whether there is room for so many lines, as far as is known, and without
  // those that are reserved.
  bool HasRoomFor(uint32_t lines) const {
    return position_ + lines <= room_end_;
  }
  bool HasRoomForLast(uint32_t lines) const {
    return position_ + lines <= room_end_ + kReservedLines;
  }

  // Whether PutShort may follow. Else WriteRun and Publish do, or there is no
  // room.
  bool MayPutShort() const {
    return HasRoomFor(kShortLines) && end_ - next_ > kShortLines;
  }
  // Writes a small packet (packet.h), or with kDescribedBit descriptors.
  // REQUIRES: bytes <= kShortBytes. MayPutShort().
  void PutShort(uint32_t immediate, const std::byte* data, uint32_t bytes,
                uint64_t described = 0) {
    assert(bytes <= kShortBytes && MayPutShort());
    RingLine* const first = next_;
    const uint64_t lap = lap_;
    uint32_t count = 1;
    if (bytes > kLinePayloadBytes) {
      RingLine* const second = first + 1;
      second->word.store(lap, std::memory_order_relaxed);
      CopyLinePayload(second->payload, data + kLinePayloadBytes,
                      bytes - kLinePayloadBytes);
      // The first line last, and in one go: the peer reads it again and again,
      // and takes it away between two writes that are far apart.
      std::memcpy(first->payload, data, kLinePayloadBytes);
      ++count;
    } else {
      CopyLinePayload(first->payload, data, bytes);
    }
    first->word.store(SmallPacketWord(immediate, bytes, lap) | described,
                      std::memory_order_release);
    position_ += count;
    next_ = first + count;
    if (more_follow_) FetchNext(kShortLines);
    more_follow_ = true;
  }

  // Whether the next packet is likely not to be the last one for a while: said
  // after each batch of packets from the peer, and so where nothing came since
  // the last packet. Then the lines of the one behind it are fetched as soon as
  // it is written: what the reader has read is in its cache, and a CPU that has
  // to wait for each line to come back soon has no room for what else it
  // stores. A last packet's next lines are left alone: the reader polls them
  // meanwhile.
  void SetMoreFollow(bool more) { more_follow_ = more; }

  // The payload of the next packet: in one piece, or piece by piece, each at
  // the offset that the last one returned, from 0.
  void WriteRun(const std::byte* data, uint32_t bytes);
  uint32_t WritePiece(uint32_t offset, const std::byte* data, uint32_t bytes);
  // Makes a packet of what was written.
  void Publish(const Packet& packet);

  // After a packet of so many bytes, for the next one is likely to be as long:
  // its lines come back now, and not one after the other when they are written.
  // Where more follow, as above; else those of a long one, while the reader is
  // busy with this one.
  void FetchBack(uint32_t bytes);

 private:
  // The line behind one of `lap`, which becomes that line's lap: a continuation
  // may be of the next one.
  RingLine* Following(RingLine* line, uint64_t* lap) const {
    if (++line == end_) [[unlikely]] {
      line = lines_;
      *lap = NextLap(*lap);
    }
    return line;
  }
  // The line so many behind the next one.
  RingLine* LineAfter(uint32_t count, uint64_t* lap) const;
  void FetchNext(uint32_t lines) const {
    uint64_t lap = lap_;
    RingLine* line = next_;
    for (; lines != 0; --lines, line = Following(line, &lap)) {
      FetchForWriting(line);
    }
  }

  RingLine* lines_ = nullptr;
  RingLine* end_ = nullptr;
  RingLine* next_ = nullptr;
  uint64_t lap_ = 1;  // of the next line, as its word has it
  uint64_t position_ = 0;
  uint64_t room_end_ = 0;  // positions before it may be written
  bool more_follow_ = false;
};

// Where the next packet of an empty ring will be, for who has to know no more
// of it than whether there is any, and touches nothing else.
struct IdleRing {
  const std::atomic<uint64_t>* word = nullptr;
  uint64_t lap = 0;

  explicit operator bool() const { return word != nullptr; }
  bool IsEmpty() const {
    return (word->load(std::memory_order_acquire) & kLapMask) != lap;
  }
};

// The reader's end.
class IncomingRing {
 public:
  // Without lines: nothing else may be called.
  IncomingRing() = default;
  // REQUIRES: first < count.
  IncomingRing(const RingLine* lines, uint32_t count, uint32_t first = 0)
      : next_(lines + first), lines_(lines), end_(lines + count) {}

  // Lines that were taken, ever.
  uint64_t position() const { return position_; }

  // Whether there is a packet, and the word that it begins with. Cheap: one
  // load of one cache line.
  bool HasPacket(uint64_t* word) const {
    *word = next_->word.load(std::memory_order_acquire);
    return IsPacket(*word);
  }
  // The same for a small one. What it says of its length may be wrong.
  bool HasSmallPacket(uint64_t* word) const {
    *word = next_->word.load(std::memory_order_acquire);
    return IsSmallPacket(*word, lap_);
  }
  // What is described by the next packet, by the word that HasSmallPacket gave.
  // Returns how many pieces it is; 0: it is none of so few.
  uint32_t ReadDescribed(uint64_t word, Descriptor* pieces) const {
    const uint32_t bytes = PayloadBytesOf(word);
    if (!IsSmallDescribed(word, lap_) || bytes % sizeof(Descriptor) != 0 ||
        bytes > kLineDescriptors * sizeof(Descriptor)) {
      return 0;
    }
    std::memcpy(pieces, next_->payload, kLineDescriptors * sizeof(Descriptor));
    // What is checked is what is used: it is not read again.
    std::atomic_signal_fence(std::memory_order_acq_rel);
    return bytes / sizeof(Descriptor);
  }
  // Whether there was any packet, by the word that HasSmallPacket gave.
  bool IsPacket(uint64_t word) const { return (word & kLapMask) == lap_; }
  // Holds until a packet is taken. REQUIRES: there is none.
  IdleRing idle() const { return {&next_->word, lap_}; }
  // Has the cache fetch anew what a small packet has beside its first line.
  void FetchSecondLine() const {
    uint64_t lap = lap_;
    __builtin_prefetch(Following(next_, &lap));
  }

  // Copies the next packet's payload, as much as its word says that it has.
  // REQUIRES: bytes <= kMaxPayloadBytes.
  void TakeSmall(std::byte* out, uint32_t bytes) {
    if (bytes > kShortBytes || end_ - next_ <= kShortLines) [[unlikely]]
      return TakeRun(out, bytes);
    const RingLine* const first = next_;
    uint32_t count = 1;
    if (bytes > kLinePayloadBytes) {
      const RingLine* const second = first + 1;
      std::memcpy(out, first->payload, kLinePayloadBytes);
      CopyLinePayload(out + kLinePayloadBytes, second->payload,
                      bytes - kLinePayloadBytes);
      ++count;
    } else {
      CopyLinePayload(out, first->payload, bytes);
    }
    position_ += count;
    next_ = first + count;
  }

  // Copies [offset, offset + bytes) of the next packet's payload.
  void Read(uint32_t offset, std::byte* out, uint32_t bytes) const;
  void Advance(uint32_t lines) {
    position_ += lines;
    next_ = LineAfter(lines, &lap_);
  }

 private:
  // As the writer's.
  const RingLine* Following(const RingLine* line, uint64_t* lap) const {
    if (++line == end_) [[unlikely]] {
      line = lines_;
      *lap = NextLap(*lap);
    }
    return line;
  }
  const RingLine* LineAfter(uint32_t count, uint64_t* lap) const;
  // TakeSmall of more than short ones, or around the end.
  void TakeRun(std::byte* out, uint32_t bytes);

  const RingLine* next_ = nullptr;
  uint64_t lap_ = 1;  // of the next line, as its word has it
  const RingLine* lines_ = nullptr;
  const RingLine* end_ = nullptr;
  uint64_t position_ = 0;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_RING_H_
