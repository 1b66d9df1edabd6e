#include "rdma_transport/software/engine/packet_ring.h"

#include <algorithm>

namespace rdma::soft {
namespace {

constexpr uint32_t kLinesWorthFetching = 8;

}  // namespace

void OutgoingRing::WriteRun(const std::byte* data, uint32_t bytes) {
  uint32_t first = bytes;
  if (bytes > kLinePayloadBytes) {
    first = kLinePayloadBytes;
    uint64_t position = position_;
    for (uint32_t done = first; done < bytes; done += kLinePayloadBytes) {
      ++position;
      CopyLinePayload(LineAt(position).payload, data + done,
                      std::min(bytes - done, kLinePayloadBytes));
      Seal(position);
    }
  }
  CopyLinePayload(LineAt(position_).payload, data, first);
}

uint32_t OutgoingRing::WritePiece(uint32_t offset, const std::byte* data,
                                  uint32_t bytes) {
  while (bytes != 0) {
    const uint64_t position = position_ + offset / kLinePayloadBytes;
    const uint32_t filled = offset % kLinePayloadBytes;
    if (filled == 0 && position != position_) Seal(position);
    const uint32_t piece = std::min(bytes, kLinePayloadBytes - filled);
    CopyLinePayload(LineAt(position).payload + filled, data, piece);
    offset += piece;
    data += piece;
    bytes -= piece;
  }
  return offset;
}

void OutgoingRing::Publish(const Packet& packet) {
  LineAt(position_).word.store(EncodeWord(packet, RingLap(position_, shift_)),
                               std::memory_order_release);
  position_ += LinesFor(packet.payload_bytes);
}

// By stores, into what is nobody's, for CPUs leave many a prefetch out. The
// first line, which the peer polls, would not stay.
void OutgoingRing::FetchBack(uint32_t bytes) const {
  const uint32_t lines = LinesFor(bytes);
  if (lines < kLinesWorthFetching || !HasRoomForLast(lines)) return;
  for (uint64_t i = 1; i < lines; ++i) {
    RingLine& line = LineAt(position_ + i);
    *static_cast<volatile std::byte*>(line.payload) = std::byte{};
  }
}

void IncomingRing::ReadRun(uint64_t position, std::byte* out,
                           uint32_t bytes) const {
  for (; bytes > kLinePayloadBytes; bytes -= kLinePayloadBytes) {
    std::memcpy(out, lines_[position++ & mask_].payload, kLinePayloadBytes);
    out += kLinePayloadBytes;
  }
  CopyLinePayload(out, lines_[position & mask_].payload, bytes);
}

void IncomingRing::Read(uint32_t offset, std::byte* out,
                        uint32_t bytes) const {
  uint64_t position = position_ + offset / kLinePayloadBytes;
  if (const uint32_t in_line = offset % kLinePayloadBytes; in_line != 0) {
    const uint32_t piece = std::min(bytes, kLinePayloadBytes - in_line);
    CopyLinePayload(out, lines_[position++ & mask_].payload + in_line, piece);
    out += piece;
    bytes -= piece;
  }
  ReadRun(position, out, bytes);
}

}  // namespace rdma::soft
