#include "rdma_transport/software/shm/shm_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/engine/asymmetric_fence.h"
#include "rdma_transport/software/log.h"

namespace rdma::soft {
namespace {

enum ControlType : uint32_t {
  kRing = 1,
  kAnnounce = 2,
  kWithdraw = 3,
};

struct ControlRecord {
  uint32_t type;
  uint32_t arena;
};
static_assert(sizeof(ControlRecord) == 8);

// Lines that packets which end a connection may use, and others may not: one
// for each of kRefused, kGone and kAccessFault.
constexpr uint32_t kReservedLines = 3;

// A peer's arenas that a link keeps; each is a mapping.
constexpr size_t kMaxPeerArenas = 1024;

constexpr int kMaxControlPerService = 256;

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

uint64_t ShmLink::Send(const Packet& packet, const ConstBytes* parts,
                       int part_count) {
  if (control_pending_.load(std::memory_order_relaxed)) [[unlikely]] {
    FlushControl();
  }
  const uint32_t lines = LinesFor(packet.payload_bytes);
  const uint32_t reserve = EndsConnection(packet.kind) ? 0 : kReservedLines;
  if (tx_position_ + lines + reserve > tx_consumed_ + tx_mask_ + 1)
      [[unlikely]] {
    if (!HasRoomFor(lines, reserve)) return 0;
  }
  // A continuation line's word is of its own lap, which may be the next one.
  for (uint32_t i = 1; i < lines; ++i) {
    const uint64_t position = tx_position_ + i;
    tx_lines_[position & tx_mask_].word.store(LapOf(position) & kLapMask,
                                              std::memory_order_relaxed);
  }
  WritePayload(tx_position_, parts, part_count);
  tx_lines_[tx_position_ & tx_mask_].word.store(
      EncodeWord(packet, LapOf(tx_position_)), std::memory_order_release);
  tx_position_ += lines;
  return tx_position_;
}

bool ShmLink::HasRoomFor(uint32_t lines, uint32_t reserve) {
  acknowledged();
  return tx_position_ + lines + reserve <= tx_consumed_ + tx_mask_ + 1;
}

void ShmLink::WritePayload(uint64_t position, const ConstBytes* parts,
                           int part_count) {
  if (part_count == 1) [[likely]] {
    const std::byte* data = parts->data;
    uint32_t left = parts->bytes;
    for (; left > kLinePayloadBytes; left -= kLinePayloadBytes) {
      std::memcpy(tx_lines_[position++ & tx_mask_].payload, data,
                  kLinePayloadBytes);
      data += kLinePayloadBytes;
    }
    CopyLinePayload(tx_lines_[position & tx_mask_].payload, data, left);
    return;
  }
  uint32_t filled = 0;  // of the current line
  for (int i = 0; i < part_count; ++i) {
    const std::byte* data = parts[i].data;
    uint32_t left = parts[i].bytes;
    while (left != 0) {
      if (filled == kLinePayloadBytes) {
        filled = 0;
        ++position;
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
  if (wanted_ == position) return;
  wanted_ = position;
  own_->acknowledge_at.store(position, std::memory_order_relaxed);
}

// --- Incoming ----------------------------------------------------------------

void ShmLink::ExpectNext() {
  rx_word_ = &rx_lines_[rx_position_ & rx_ring_mask_].word;
  rx_expect_ = ((rx_position_ >> rx_shift_) + 1) & kLapMask;
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

void ShmLink::Read(uint32_t offset, void* out, uint32_t bytes) {
  auto* to = static_cast<std::byte*>(out);
  uint64_t position = rx_position_;
  uint32_t in_line = offset;
  if (offset >= kLinePayloadBytes) {
    position += offset / kLinePayloadBytes;
    in_line = offset % kLinePayloadBytes;
  }
  if (in_line != 0) [[unlikely]] {
    const uint32_t piece = std::min(bytes, kLinePayloadBytes - in_line);
    CopyLinePayload(to, rx_lines_[position++ & rx_ring_mask_].payload + in_line,
                    piece);
    to += piece;
    bytes -= piece;
  }
  for (; bytes > kLinePayloadBytes; bytes -= kLinePayloadBytes) {
    std::memcpy(to, rx_lines_[position++ & rx_ring_mask_].payload,
                kLinePayloadBytes);
    to += kLinePayloadBytes;
  }
  CopyLinePayload(to, rx_lines_[position & rx_ring_mask_].payload, bytes);
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
  const ControlRecord record = {kRing, 0};
  SendMessage(socket_.get(), &record, sizeof(record), {});
  bell->rung = armed;
}

// --- The peer's memory -------------------------------------------------------

uint32_t ShmLink::peer_access() const {
  return theirs_->access.load(std::memory_order_relaxed);
}

Link::Access ShmLink::Resolve(uint32_t arena, uint64_t offset, uint64_t bytes,
                              bool writable, std::byte** address) {
  if (arena != last_arena_ || last_mapping_ == nullptr) {
    std::shared_ptr<const PeerMapping> found = FindArena(arena);
    if (found == nullptr) {
      return hung_up() ? Access::kInvalid : Access::kNotYet;
    }
    last_arena_ = arena;
    last_mapping_ = std::move(found);
  }
  const PeerMapping& mapping = *last_mapping_;
  if (offset > mapping.bytes() || bytes > mapping.bytes() - offset ||
      (writable && !mapping.writable)) {
    return Access::kInvalid;
  }
  *address = mapping.base() + offset;
  return Access::kOk;
}

std::shared_ptr<const PeerMapping> ShmLink::FindArena(uint32_t arena) {
  auto found = arenas_.find(arena);
  if (found == arenas_.end()) {
    // It was announced before it could be asked for, if it ever was.
    Service();
    found = arenas_.find(arena);
  }
  return found == arenas_.end() ? nullptr : found->second;
}

void ShmLink::OnAnnouncement(uint32_t arena, int fd) {
  if (arenas_.size() >= kMaxPeerArenas) {
    EndForCause("announced more arenas than a connection may have");
    return;
  }
  // Writable where the peer lets us: it sealed what is only to be read.
  absl::StatusOr<std::shared_ptr<const PeerMapping>> mapping =
      cache_->Map(fd, {.writable = true});
  if (!mapping.ok()) mapping = cache_->Map(fd, {.writable = false});
  if (!mapping.ok()) {
    EndForCause(absl::StrCat("announced memory that cannot be mapped: ",
                             std::string(mapping.status().message())));
    return;
  }
  arenas_[arena] = *std::move(mapping);
}

void ShmLink::EndForCause(const std::string& what) {
  Log(absl::StrCat("a peer (QP ", peer_.qp_num, ") ", what,
                   ": its connection ends"));
  HangUp();
  MarkHungUp();
}

void ShmLink::PublishWriting(uint32_t key) {
  own_->writing_key.store(key, std::memory_order_release);
}

// --- Our memory --------------------------------------------------------------

bool ShmLink::Announce(uint32_t arena) {
  if (arena < kFastArenas &&
      (announced_bits_[arena / 64].load(std::memory_order_acquire) >>
           (arena % 64) &
       1) != 0) {
    return true;
  }
  std::lock_guard lock(control_mutex_);
  if (announced_.contains(arena)) return true;
  const PendingControl control = {kAnnounce, arena};
  if (pending_.empty() && SendControl(control) != SendResult::kFull) {
    return true;
  }
  for (const PendingControl& waiting : pending_) {
    if (waiting.type == kAnnounce && waiting.arena == arena) return false;
  }
  pending_.push_back(control);
  control_pending_.store(true, std::memory_order_relaxed);
  return false;
}

void ShmLink::Withdraw(uint32_t arena) {
  std::lock_guard lock(control_mutex_);
  if (announced_.erase(arena) == 0) return;
  if (arena < kFastArenas) {
    announced_bits_[arena / 64].fetch_and(~(uint64_t{1} << arena % 64));
  }
  const PendingControl control = {kWithdraw, arena};
  if (pending_.empty() && SendControl(control) != SendResult::kFull) return;
  pending_.push_back(control);
  control_pending_.store(true, std::memory_order_relaxed);
}

SendResult ShmLink::SendControl(const PendingControl& control) {
  const ControlRecord record = {control.type, control.arena};
  if (control.type == kWithdraw) {
    return SendMessage(socket_.get(), &record, sizeof(record), {});
  }
  const std::shared_ptr<Arena> arena = own_arenas_->FindById(control.arena);
  if (arena == nullptr) return SendResult::kSent;  // freed meanwhile
  const SendResult result =
      SendMessage(socket_.get(), &record, sizeof(record), {arena->fd()});
  if (result == SendResult::kSent) {
    announced_.insert(control.arena);
    if (control.arena < kFastArenas) {
      announced_bits_[control.arena / 64].fetch_or(uint64_t{1}
                                                   << control.arena % 64);
    }
  }
  return result;
}

void ShmLink::FlushControl() {
  std::lock_guard lock(control_mutex_);
  while (!pending_.empty() &&
         SendControl(pending_.front()) != SendResult::kFull) {
    pending_.pop_front();
  }
  control_pending_.store(!pending_.empty(), std::memory_order_relaxed);
}

bool ShmLink::PeerIsWriting(uint32_t key) const {
  return theirs_->writing_key.load(std::memory_order_acquire) == key;
}

void ShmLink::SetAccess(uint32_t access) {
  own_->access.store(access, std::memory_order_relaxed);
}

// --- Life --------------------------------------------------------------------

bool ShmLink::IsPeerGone() const {
  if (hung_up()) return true;
  pollfd socket = {.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&socket, 1, 0) == 1;
}

void ShmLink::MarkClosed() {
  own_->closed.store(1, std::memory_order_relaxed);
  // The caller's later stores to the described memory stay behind this one.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ShmLink::HangUp() { shutdown(socket_.get(), SHUT_RDWR); }

void ShmLink::Service() {
  if (control_pending_.load(std::memory_order_relaxed)) FlushControl();
  ControlMessage message;
  // Bounded: a peer that sends without end does not hold us here.
  for (int i = 0; i < kMaxControlPerService; ++i) {
    switch (ReceiveMessage(socket_.get(), &message)) {
      case ReceiveResult::kNone:
        return;
      case ReceiveResult::kClosed:
        if (!hung_up()) MarkHungUp();
        return;
      case ReceiveResult::kMessage:
        break;
    }
    ControlRecord record;
    if (message.bytes != sizeof(record) || message.truncated) {
      EndForCause("sent what is no message");
      return;
    }
    std::memcpy(&record, message.data.data(), sizeof(record));
    if (record.type == kRing) {
      rang_ = true;
    } else if (record.type == kAnnounce && message.fd_count == 1) {
      OnAnnouncement(record.arena, message.fds[0].get());
    } else if (record.type == kWithdraw) {
      arenas_.erase(record.arena);
      if (last_arena_ == record.arena) last_mapping_.reset();
    } else {
      EndForCause("sent an unknown message");
    }
    if (hung_up()) return;
  }
}

}  // namespace rdma::soft
