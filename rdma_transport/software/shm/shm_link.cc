#include "rdma_transport/software/shm/shm_link.h"

#include <bit>
#include <cstring>

#include "rdma_transport/asymmetric_fence.h"
#include "rdma_transport/software/shm/control_socket.h"
#include "rdma_transport/software/shm/link_messages.h"

namespace rdma::soft {
namespace {

// Lines that packets which end a connection may use, and others may not: one
// for each of kRefused, kGone and kAccessFault.
constexpr uint32_t kReservedLines = 3;

bool EndsConnection(PacketKind kind) {
  return kind == PacketKind::kRefused || kind == PacketKind::kGone ||
         kind == PacketKind::kAccessFault;
}

LinkControl* ControlOf(std::byte* segment) {
  return reinterpret_cast<LinkControl*>(segment);
}

RingLine* LinesOf(std::byte* segment) {
  return reinterpret_cast<RingLine*>(segment + sizeof(LinkControl));
}

uint32_t ShiftFor(uint32_t ring_lines) {
  return static_cast<uint32_t>(std::countr_zero(ring_lines));
}

}  // namespace

absl::StatusOr<ShmLink::Local> ShmLink::Local::Create(uint32_t ring_lines,
                                                      uint32_t access) {
  absl::StatusOr<Segment> segment =
      Segment::Create("verbena-link", LinkSegmentBytes(ring_lines),
                      Sharing::kReadOnlyToPeers, Prefault::kYes);
  if (!segment.ok()) return segment.status();
  ControlOf(segment->base())->access.store(access, std::memory_order_relaxed);
  return Local{*std::move(segment), ring_lines};
}

ShmLink::ShmLink(UniqueFd socket, Local local, Peer peer, bool asymmetric,
                 const ArenaTable* arenas, MappingCache* cache)
    : tx_lines_(LinesOf(local.segment.base())),
      tx_mask_(local.ring_lines - 1),
      tx_shift_(ShiftFor(local.ring_lines)),
      own_(ControlOf(local.segment.base())),
      asymmetric_(asymmetric),
      rx_lines_(LinesOf(peer.segment->base())),
      rx_ring_mask_(peer.ring_lines - 1),
      rx_shift_(ShiftFor(peer.ring_lines)),
      theirs_(ControlOf(peer.segment->base())),
      socket_(std::move(socket)),
      local_(std::move(local)),
      peer_(std::move(peer)),
      peer_keys_(PeerKeys(peer_.device->base())),
      own_arenas_(arenas),
      cache_(cache) {
  peer_qp_num_ = peer_.qp_num;
  peer_pd_ = peer_.pd;
  const std::byte* const device = peer_.device->base();
  recv_bell_.armed = &PeerCqLine(device, peer_.recv_cq_line)->armed;
  send_bell_.armed = &PeerCqLine(device, peer_.send_cq_line)->armed;
  ack_bell_ =
      peer_.send_cq_line == peer_.recv_cq_line ? &recv_bell_ : &send_bell_;
  rx_mask_ = kLapMask;
  ExpectNext();
}

// --- Outgoing ----------------------------------------------------------------

inline bool ShmLink::HasRoomFor(uint32_t lines, uint32_t reserve) {
  if (control_pending_.load(std::memory_order_relaxed)) [[unlikely]] {
    FlushControl();
  }
  const uint64_t end = tx_position_ + lines + reserve;
  const uint32_t ring_lines = tx_mask_ + 1;
  return end <= tx_consumed_ + ring_lines || end <= acknowledged() + ring_lines;
}

// A continuation line's word is of its own lap, which may be the next one.
inline void ShmLink::SealContinuation(uint64_t position) {
  tx_lines_[position & tx_mask_].word.store(LapOf(position) & kLapMask,
                                            std::memory_order_relaxed);
}

// The first line last, and in one go: the peer reads it again and again, and
// takes it away between two writes that are far apart.
inline void ShmLink::WriteRun(const std::byte* data, uint32_t bytes) {
  uint32_t first = bytes;
  if (bytes > kLinePayloadBytes) {
    first = kLinePayloadBytes;
    uint64_t position = tx_position_;
    for (uint32_t done = first; done < bytes; done += kLinePayloadBytes) {
      ++position;
      CopyLinePayload(tx_lines_[position & tx_mask_].payload, data + done,
                      std::min(bytes - done, kLinePayloadBytes));
      SealContinuation(position);
    }
  }
  CopyLinePayload(tx_lines_[tx_position_ & tx_mask_].payload, data, first);
}

// Makes a packet of what was written at tx_position_.
inline void ShmLink::Publish(const Packet& packet, uint32_t lines) {
  tx_lines_[tx_position_ & tx_mask_].word.store(
      EncodeWord(packet, LapOf(tx_position_)), std::memory_order_release);
  tx_position_ += lines;
}

uint64_t ShmLink::Send(const Packet& packet, const ConstBytes* parts,
                       int part_count) {
  const uint32_t lines = LinesFor(packet.payload_bytes);
  const uint32_t reserve = EndsConnection(packet.kind) ? 0 : kReservedLines;
  if (!HasRoomFor(lines, reserve)) return 0;
  if (part_count == 1) {
    WriteRun(parts->data, parts->bytes);
  } else {
    WriteParts(parts, part_count);
  }
  Publish(packet, lines);
  return tx_position_;
}

// What the peer has read is in its cache. The next packet is likely to be as
// long: its lines come back while the peer is busy with this one, and not one
// after the other when they are written. By stores, into what is nobody's, for
// CPUs leave many a prefetch out. The first line, which the peer polls, would
// not stay.
inline void ShmLink::FetchBack(uint32_t lines) {
  if (lines < kLinesWorthFetching ||
      tx_position_ + lines > tx_consumed_ + tx_mask_ + 1) {
    return;
  }
  for (uint64_t i = 1; i < lines; ++i) {
    RingLine& line = tx_lines_[(tx_position_ + i) & tx_mask_];
    *static_cast<volatile std::byte*>(line.payload) = std::byte{};
  }
}

uint64_t ShmLink::SendSmall(uint32_t immediate, const std::byte* data,
                            uint32_t bytes) {
  const uint32_t lines = LinesFor(bytes);
  if (!HasRoomFor(lines, kReservedLines)) [[unlikely]]
    return 0;
  WriteRun(data, bytes);
  Publish({.kind = PacketKind::kSendWithImmediate,
           .payload_bytes = static_cast<uint16_t>(bytes),
           .immediate = immediate},
          lines);
  Wake(/*solicited=*/false);
  FetchBack(lines);
  return tx_position_;
}

void ShmLink::WriteParts(const ConstBytes* parts, int part_count) {
  uint64_t position = tx_position_;
  uint32_t filled = 0;  // of the current line
  for (int i = 0; i < part_count; ++i) {
    const std::byte* data = parts[i].data;
    uint32_t left = parts[i].bytes;
    while (left != 0) {
      if (filled == kLinePayloadBytes) {
        filled = 0;
        SealContinuation(++position);
      }
      const uint32_t piece = std::min(left, kLinePayloadBytes - filled);
      CopyLinePayload(tx_lines_[position & tx_mask_].payload + filled, data,
                      piece);
      filled += piece;
      data += piece;
      left -= piece;
    }
  }
}

void ShmLink::Wake(bool solicited) {
  FenceBeforeBell();
  const uint32_t armed = recv_bell_.armed->load(std::memory_order_relaxed);
  if (armed == 0 || armed == recv_bell_.rung) [[likely]]
    return;
  if (solicited || (armed & kSolicitedOnly) == 0) Ring(&recv_bell_, armed);
}

uint64_t ShmLink::acknowledged() {
  const uint64_t consumed = theirs_->consumed.load(std::memory_order_acquire);
  // Anything outside of what can be is as good as no news: such a peer harms
  // itself.
  if (consumed > tx_consumed_ && consumed <= tx_position_) {
    tx_consumed_ = consumed;
  }
  return tx_consumed_;
}

void ShmLink::WantAcknowledgement(uint64_t position) {
  own_->acknowledge_at.store(position, std::memory_order_relaxed);
}

// --- Incoming ----------------------------------------------------------------

void ShmLink::ExpectNext() {
  rx_word_ = &rx_lines_[rx_position_ & rx_ring_mask_].word;
  rx_expect_ = ((rx_position_ >> rx_shift_) + 1) & kLapMask;
  rx_second_line_ = &rx_lines_[(rx_position_ + 1) & rx_ring_mask_];
}

Link::PeekResult ShmLink::Peek(Packet* packet) {
  const uint64_t word = rx_word_->load(std::memory_order_acquire);
  if ((word & kLapMask) != rx_expect_) return PeekResult::kNothing;
  if (!DecodeWord(word, packet)) {
    violation_ = "a ring line that begins no packet";
    return PeekResult::kViolation;
  }
  rx_packet_lines_ = LinesFor(packet->payload_bytes);
  return PeekResult::kPacket;
}

inline void ShmLink::ReadRun(uint64_t position, std::byte* out,
                             uint32_t bytes) const {
  for (; bytes > kLinePayloadBytes; bytes -= kLinePayloadBytes) {
    std::memcpy(out, rx_lines_[position++ & rx_ring_mask_].payload,
                kLinePayloadBytes);
    out += kLinePayloadBytes;
  }
  CopyLinePayload(out, rx_lines_[position & rx_ring_mask_].payload, bytes);
}

void ShmLink::Read(uint32_t offset, void* out, uint32_t bytes) {
  auto* to = static_cast<std::byte*>(out);
  uint64_t position = rx_position_ + offset / kLinePayloadBytes;
  if (const uint32_t in_line = offset % kLinePayloadBytes; in_line != 0) {
    const uint32_t piece = std::min(bytes, kLinePayloadBytes - in_line);
    CopyLinePayload(to, rx_lines_[position++ & rx_ring_mask_].payload + in_line,
                    piece);
    to += piece;
    bytes -= piece;
  }
  ReadRun(position, to, bytes);
}

void ShmLink::TakeSmall(void* out, uint32_t bytes) {
  ReadRun(rx_position_, static_cast<std::byte*>(out), bytes);
  rx_position_ += LinesFor(bytes);
  ExpectNext();
}

void ShmLink::Consume() {
  rx_position_ += rx_packet_lines_;
  ExpectNext();
}

void ShmLink::Acknowledge() {
  own_->consumed.store(rx_position_, std::memory_order_release);
  FenceBeforeBell();
  const uint32_t armed = ack_bell_->armed->load(std::memory_order_relaxed);
  if (armed == 0 || armed == ack_bell_->rung) [[likely]]
    return;
  const uint64_t wanted =
      theirs_->acknowledge_at.load(std::memory_order_relaxed);
  if (wanted != 0 && wanted <= rx_position_ && (armed & kSolicitedOnly) == 0) {
    Ring(ack_bell_, armed);
  }
}

bool ShmLink::PeerClosed() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return theirs_->closed.load(std::memory_order_relaxed) != 0;
}

// --- Waking ------------------------------------------------------------------

void ShmLink::FenceBeforeBell() const {
  if (asymmetric_) [[likely]] {
    AsymmetricFence::Light();
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void ShmLink::Ring(Bell* bell, uint32_t armed) {
  // A socket without room is readable on the other side: that wakes as well.
  SendRing();
  bell->rung = armed;
}

void ShmLink::SendRing() {
  const LinkMessage message = {LinkMessageType::kRing, 0};
  SendMessage(socket_.get(), &message, sizeof(message), {});
}

}  // namespace rdma::soft
