#include "rdma_transport/software/shm/shm_link.h"

#include "rdma_transport/software/shm/control_socket.h"
#include "rdma_transport/software/shm/link_messages.h"

namespace rdma::soft {
namespace {

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

JointReadBoard* BoardOf(std::byte* segment, uint32_t ring_lines) {
  return reinterpret_cast<JointReadBoard*>(LinesOf(segment) + ring_lines);
}

}  // namespace

absl::StatusOr<ShmLink::Local> ShmLink::Local::Create(uint32_t qp_num,
                                                      uint32_t ring_lines,
                                                      uint32_t access) {
  absl::StatusOr<Segment> segment =
      Segment::Create("verbena-link", LinkSegmentBytes(ring_lines),
                      Sharing::kReadOnlyToPeers, Prefault::kYes);
  if (!segment.ok()) return segment.status();
  ControlOf(segment->base())->access.store(access, std::memory_order_relaxed);
  return Local{*std::move(segment), ring_lines, qp_num};
}

ShmLink::ShmLink(UniqueFd socket, Local local, Peer peer, bool asymmetric,
                 const ArenaTable* arenas, MappingCache* cache)
    : own_(ControlOf(local.segment.base())),
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
  asymmetric_ = asymmetric;
  tx_ = OutgoingRing(LinesOf(local_.segment.base()), local_.ring_lines,
                     FirstRingLineOf(local_.qp_num));
  rx_ = IncomingRing(LinesOf(peer_.segment->base()), peer_.ring_lines,
                     FirstRingLineOf(peer_.qp_num));
  own_consumed_ = &own_->consumed;
  own_board_ = BoardOf(local_.segment.base(), local_.ring_lines);
  peer_board_ = BoardOf(peer_.segment->base(), peer_.ring_lines);
}

// --- Outgoing ----------------------------------------------------------------

inline bool ShmLink::HasRoomFor(const Packet& packet) {
  if (control_pending_.load(std::memory_order_relaxed)) [[unlikely]] {
    FlushControl();
  }
  const uint32_t lines = LinesFor(packet.payload_bytes);
  const auto has_room = [&] {
    return EndsConnection(packet.kind) ? tx_.HasRoomForLast(lines)
                                       : tx_.HasRoomFor(lines);
  };
  if (has_room()) return true;
  acknowledged();
  return has_room();
}

uint64_t ShmLink::Send(const Packet& packet, const ConstBytes* parts,
                       int part_count) {
  if (!HasRoomFor(packet)) return 0;
  if (part_count == 1) {
    tx_.WriteRun(parts->data, parts->bytes);
  } else {
    uint32_t offset = 0;
    for (int i = 0; i < part_count; ++i) {
      offset = tx_.WritePiece(offset, parts[i].data, parts[i].bytes);
    }
  }
  tx_.Publish(packet);
  return tx_.position();
}

void ShmLink::Wake(bool solicited) {
  FenceBeforeBell();
  const uint32_t armed = recv_bell_.armed->load(std::memory_order_relaxed);
  if (armed == 0 || armed == recv_bell_.rung) [[likely]]
    return;
  if (solicited || (armed & kSolicitedOnly) == 0) Ring(&recv_bell_, armed);
}

// Solicited only or not: other work of its may wait for the READ.
void ShmLink::WakeReader() {
  FenceBeforeBell();
  const uint32_t armed = ack_bell_->armed->load(std::memory_order_relaxed);
  if (armed != 0 && armed != ack_bell_->rung) Ring(ack_bell_, armed);
}

uint64_t ShmLink::acknowledged() {
  const uint64_t consumed = theirs_->consumed.load(std::memory_order_acquire);
  // Anything outside of what can be is as good as no news: such a peer harms
  // itself.
  if (consumed > tx_consumed_ && consumed <= tx_.position()) {
    tx_consumed_ = consumed;
    tx_.SetConsumed(consumed);
  }
  return tx_consumed_;
}

void ShmLink::WantAcknowledgement(uint64_t position) {
  own_->acknowledge_at.store(position, std::memory_order_relaxed);
}

// --- Incoming ----------------------------------------------------------------

Link::PeekResult ShmLink::Peek(Packet* packet) {
  uint64_t word;
  if (!rx_.HasPacket(&word)) return PeekResult::kNothing;
  if (!DecodeWord(word, packet)) {
    violation_ = "a ring line that begins no packet";
    return PeekResult::kViolation;
  }
  rx_packet_lines_ = LinesFor(packet->payload_bytes);
  return PeekResult::kPacket;
}

void ShmLink::Read(uint32_t offset, void* out, uint32_t bytes) {
  rx_.Read(offset, static_cast<std::byte*>(out), bytes);
}

void ShmLink::Consume() { rx_.Advance(rx_packet_lines_); }

void ShmLink::Acknowledge() {
  own_->consumed.store(rx_.position(), std::memory_order_release);
  FenceBeforeBell();
  const uint32_t armed = ack_bell_->armed->load(std::memory_order_relaxed);
  if (armed == 0 || armed == ack_bell_->rung) [[likely]]
    return;
  const uint64_t wanted =
      theirs_->acknowledge_at.load(std::memory_order_relaxed);
  if (wanted != 0 && wanted <= rx_.position() &&
      (armed & kSolicitedOnly) == 0) {
    Ring(ack_bell_, armed);
  }
}

bool ShmLink::PeerClosed() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  return theirs_->closed.load(std::memory_order_relaxed) != 0;
}

// --- Waking ------------------------------------------------------------------

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
