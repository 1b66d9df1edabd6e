#include "rdma_transport/software/engine/packet_ring.h"

#include <algorithm>
#include <utility>

namespace rdma::soft {
namespace {

constexpr uint32_t kLinesWorthFetching = 8;

}  // namespace

RingLine* OutgoingRing::LineAfter(uint32_t count, uint64_t* lap) const {
  const uint32_t left = static_cast<uint32_t>(end_ - next_);
  if (count < left) return next_ + count;
  *lap = NextLap(*lap);
  return lines_ + (count - left);
}

// The first line last: see PutShort.
void OutgoingRing::WriteRun(const std::byte* data, uint32_t bytes) {
  uint64_t lap = lap_;
  RingLine* line = next_;
  for (uint32_t done = kLinePayloadBytes; done < bytes;
       done += kLinePayloadBytes) {
    line = Following(line, &lap);
    CopyLinePayload(line->payload, data + done,
                    std::min(bytes - done, kLinePayloadBytes));
    line->word.store(lap, std::memory_order_relaxed);
  }
  CopyLinePayload(next_->payload, data, std::min(bytes, kLinePayloadBytes));
}

uint32_t OutgoingRing::WritePiece(uint32_t offset, const std::byte* data,
                                  uint32_t bytes) {
  while (bytes != 0) {
    uint64_t lap = lap_;
    RingLine* const line = LineAfter(offset / kLinePayloadBytes, &lap);
    const uint32_t filled = offset % kLinePayloadBytes;
    if (filled == 0 && offset != 0) {
      line->word.store(lap, std::memory_order_relaxed);
    }
    const uint32_t piece = std::min(bytes, kLinePayloadBytes - filled);
    CopyLinePayload(line->payload + filled, data, piece);
    offset += piece;
    data += piece;
    bytes -= piece;
  }
  return offset;
}

void OutgoingRing::Publish(const Packet& packet) {
  next_->word.store(EncodeWord(packet, lap_), std::memory_order_release);
  const uint32_t lines = LinesFor(packet.payload_bytes);
  position_ += lines;
  next_ = LineAfter(lines, &lap_);
}

// The latter by stores, into what is nobody's, for CPUs leave many a prefetch
// out. The first line, which the peer polls, would not stay.
void OutgoingRing::FetchBack(uint32_t bytes) {
  const uint32_t lines = LinesFor(bytes);
  if (std::exchange(more_follow_, true)) return FetchNext(lines);
  if (lines < kLinesWorthFetching || !HasRoomForLast(lines)) return;
  for (uint32_t i = 1; i < lines; ++i) {
    uint64_t lap = lap_;
    *static_cast<volatile std::byte*>(LineAfter(i, &lap)->payload) =
        std::byte{};
  }
}

const RingLine* IncomingRing::LineAfter(uint32_t count, uint64_t* lap) const {
  const uint32_t left = static_cast<uint32_t>(end_ - next_);
  if (count < left) return next_ + count;
  *lap = NextLap(*lap);
  return lines_ + (count - left);
}

void IncomingRing::TakeRun(std::byte* out, uint32_t bytes) {
  Read(0, out, bytes);
  Advance(LinesFor(bytes));
}

void IncomingRing::Read(uint32_t offset, std::byte* out, uint32_t bytes) const {
  uint64_t lap = lap_;
  const RingLine* line = LineAfter(offset / kLinePayloadBytes, &lap);
  if (const uint32_t in_line = offset % kLinePayloadBytes; in_line != 0) {
    const uint32_t piece = std::min(bytes, kLinePayloadBytes - in_line);
    CopyLinePayload(out, line->payload + in_line, piece);
    line = Following(line, &lap);
    out += piece;
    bytes -= piece;
  }
  for (; bytes > kLinePayloadBytes; bytes -= kLinePayloadBytes) {
    std::memcpy(out, line->payload, kLinePayloadBytes);
    line = Following(line, &lap);
    out += kLinePayloadBytes;
  }
  CopyLinePayload(out, line->payload, bytes);
}

}  // namespace rdma::soft
