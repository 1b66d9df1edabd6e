// A packet between two QPs, and the word that it begins with.
//
//   bits  0..7   lap: how often the ring was gone around, from 1, modulo 256
//   bits  8..11  PacketKind, in the first line of a packet; else kContinuation
//   bit  12      solicited
//   bit  13      described
//   bits 16..31  payload bytes of the whole packet
//   bits 32..63  immediate data, or rkey
//
// Thread rule: none; values and pure functions.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_H_

#include <cstdint>

namespace rdma::soft {

// What a packet asks of its receiver.
enum class PacketKind : uint8_t {
  kContinuation = 0,  // never the first line of a packet
  kSend = 1,
  kSendWithImmediate = 2,
  kSendWithInvalidate = 3,
  kWriteWithImmediate = 4,  // payload: uint32_t, the bytes that were written
  // The receiver's oldest SEND that is not acknowledged failed; `immediate` is
  // the ibv_wc_status that its WR completes with.
  kRefused = 5,
  // The sender's QP is in ERR: it takes and answers nothing more.
  kGone = 6,
  // The sender was denied access to the receiver's memory.
  kAccessFault = 7,
  // The sender has offers on its joint_read_board.h, or soon will.
  kJointRead = 8,
};
inline constexpr uint8_t kLastPacketKind = 8;

struct Packet {
  PacketKind kind = PacketKind::kSend;
  bool solicited = false;
  // The payload is a list of Descriptors of the sender's memory, not the bytes.
  bool described = false;
  uint16_t payload_bytes = 0;
  uint32_t immediate = 0;  // or the rkey to invalidate
};

// A piece of the sender's memory that the receiver copies from.
struct Descriptor {
  uint32_t arena;
  uint32_t bytes;
  uint64_t offset;
};
static_assert(sizeof(Descriptor) == 16);

// Twice copying so much costs less than the receiver's look-up of the sender's
// memory, and the completion that tells the sender that it is free again.
inline constexpr uint32_t kMaxInlineBytes = 1152;
inline constexpr uint32_t kMaxSges = 32;
inline constexpr uint32_t kMaxPayloadBytes = kMaxInlineBytes;
static_assert(kMaxSges * sizeof(Descriptor) <= kMaxPayloadBytes);

inline constexpr uint64_t kLapMask = 0xff;
inline constexpr uint64_t kDescribedBit = uint64_t{1} << 13;

inline uint64_t EncodeWord(const Packet& packet, uint64_t lap) {
  return (lap & kLapMask) | static_cast<uint64_t>(packet.kind) << 8 |
         uint64_t{packet.solicited} << 12 |
         (packet.described ? kDescribedBit : 0) |
         uint64_t{packet.payload_bytes} << 16 |
         uint64_t{packet.immediate} << 32;
}

// False: no packet begins like this.
inline bool DecodeWord(uint64_t word, Packet* packet) {
  const auto kind = static_cast<uint8_t>(word >> 8 & 0xf);
  packet->kind = static_cast<PacketKind>(kind);
  packet->solicited = (word >> 12 & 1) != 0;
  packet->described = (word & kDescribedBit) != 0;
  packet->payload_bytes = static_cast<uint16_t>(word >> 16);
  packet->immediate = static_cast<uint32_t>(word >> 32);
  return kind != static_cast<uint8_t>(PacketKind::kContinuation) &&
         kind <= kLastPacketKind && packet->payload_bytes <= kMaxPayloadBytes;
}

// What most packets are, small ones: a SEND with immediate whose bytes are in
// it, and which is not solicited. REQUIRES: lap <= kLapMask.
inline uint64_t SmallPacketWord(uint32_t immediate, uint32_t bytes,
                                uint64_t lap) {
  constexpr auto kKind = static_cast<uint64_t>(PacketKind::kSendWithImmediate);
  return lap | kKind << 8 | uint64_t{bytes} << 16 | uint64_t{immediate} << 32;
}

// Whether a packet begins like this, in this lap, and as a small one. What it
// says of its length is not looked at.
inline bool IsSmallPacket(uint64_t word, uint64_t lap) {
  constexpr uint64_t kWhat = 0x3fff;  // lap, kind, solicited, described
  return (word & kWhat) == SmallPacketWord(0, 0, lap);
}
// The same for one whose bytes are in its sender's memory, of which there are
// Descriptors in it.
inline bool IsSmallDescribed(uint64_t word, uint64_t lap) {
  return IsSmallPacket(word ^ kDescribedBit, lap);
}
inline uint32_t ImmediateOf(uint64_t word) {
  return static_cast<uint32_t>(word >> 32);
}
inline uint32_t PayloadBytesOf(uint64_t word) {
  return static_cast<uint16_t>(word >> 16);
}

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_PACKET_H_
