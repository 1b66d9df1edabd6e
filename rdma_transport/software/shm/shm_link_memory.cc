// What a ShmLink does besides moving packets: memory of both sides, and the
// socket.
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/log.h"
#include "rdma_transport/software/shm/control_socket.h"
#include "rdma_transport/software/shm/link_messages.h"
#include "rdma_transport/software/shm/shm_link.h"

namespace rdma::soft {
namespace {

// Bounds a look at the socket: a peer that sends without end does not hold us.
constexpr int kMaxMessagesPerService = 256;

// A socket has room for some 270 messages, and for more than this in any case.
constexpr int kFewMessages = 16;

}  // namespace

// --- The peer's memory -------------------------------------------------------

uint32_t ShmLink::peer_access() const {
  return theirs_->access.load(std::memory_order_relaxed);
}

Link::Access ShmLink::Resolve(uint32_t arena, uint64_t offset, uint64_t bytes,
                              bool writable, std::byte** address) {
  if (arena != last_arena_ || last_mapping_ == nullptr) {
    std::shared_ptr<const PeerMapping> found = FindArena(arena);
    if (found == nullptr) {
      return heard_out_ ? Access::kInvalid : Access::kNotYet;
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
  if (arenas_.size() >= kMaxArenas) {
    EndForCause("announced more arenas than a device may have");
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
  heard_out_ = true;
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
  const LinkMessage message = {LinkMessageType::kAnnounce, arena};
  if (pending_.empty() && SendControl(message) != SendResult::kFull) {
    return true;
  }
  for (const LinkMessage& waiting : pending_) {
    if (waiting.type == LinkMessageType::kAnnounce && waiting.arena == arena)
      return false;
  }
  pending_.push_back(message);
  control_pending_.store(true, std::memory_order_relaxed);
  return false;
}

void ShmLink::Withdraw(uint32_t arena) {
  std::lock_guard lock(control_mutex_);
  // An announcement that still waits for room goes with it.
  std::erase_if(pending_, [arena](const LinkMessage& waiting) {
    return waiting.type == LinkMessageType::kAnnounce && waiting.arena == arena;
  });
  if (announced_.erase(arena) == 0) return;
  if (arena < kFastArenas) {
    announced_bits_[arena / 64].fetch_and(~(uint64_t{1} << arena % 64));
  }
  const LinkMessage message = {LinkMessageType::kWithdraw, arena};
  if (pending_.empty() && SendControl(message) != SendResult::kFull) return;
  pending_.push_back(message);
  control_pending_.store(true, std::memory_order_relaxed);
}

SendResult ShmLink::SendControl(const LinkMessage& message) {
  if (message.type == LinkMessageType::kWithdraw) {
    return SendMessage(socket_.get(), &message, sizeof(message), {});
  }
  const uint32_t id = message.arena;
  const std::shared_ptr<Arena> arena = own_arenas_->FindById(id);
  if (arena == nullptr) return SendResult::kSent;  // freed meanwhile
  UniqueFd opened;
  const int fd = arena->FdFor(serial(), &opened);
  if (fd < 0) return SendResult::kFull;  // tried again
  const SendResult result =
      SendMessage(socket_.get(), &message, sizeof(message), {fd});
  if (result == SendResult::kSent) {
    announced_.insert(id);
    if (id < kFastArenas) {
      announced_bits_[id / 64].fetch_or(uint64_t{1} << id % 64);
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

uint32_t ShmLink::PeersWritingKey() const {
  return theirs_->writing_key.load(std::memory_order_acquire);
}

void ShmLink::SetAccess(uint32_t access) {
  own_->access.store(access, std::memory_order_relaxed);
}

// --- Life --------------------------------------------------------------------

bool ShmLink::IsPeerGone() const {
  // Our own hanging up looks like the peer's.
  if (hung_up_on_peer_.load(std::memory_order_acquire)) return false;
  if (hung_up()) return true;
  pollfd socket = {.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&socket, 1, 0) == 1;
}

void ShmLink::MarkClosed() {
  own_->closed.store(1, std::memory_order_relaxed);
  // The caller's later stores to the described memory stay behind this one.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ShmLink::HangUp() {
  if (!IsPeerGone()) hung_up_on_peer_.store(true, std::memory_order_release);
  shutdown(socket_.get(), SHUT_RDWR);
}

void ShmLink::Service() {
  if (control_pending_.load(std::memory_order_relaxed)) FlushControl();
  ControlMessage message;
  int taken = 0;
  // Up to its end, whoever saw that first: what came before it still counts.
  while (taken < kMaxMessagesPerService && !heard_out_) {
    const ReceiveResult result = ReceiveMessage(socket_.get(), &message);
    if (result == ReceiveResult::kNone) break;
    if (result == ReceiveResult::kClosed) {
      heard_out_ = true;
      MarkHungUp();
      return;
    }
    ++taken;
    OnMessage(message);
  }
  // The peer may have announcements that waited for this room, and may sleep.
  if (taken > kFewMessages && !heard_out_) SendRing();
}

void ShmLink::OnMessage(const ControlMessage& received) {
  LinkMessage message;
  if (received.descriptors_lost) {
    EndForCause(
        "sent a descriptor that this process has no room for (raise "
        "RLIMIT_NOFILE, ulimit -n)");
    return;
  }
  if (received.bytes != sizeof(message) || received.truncated) {
    EndForCause("sent what is no message");
    return;
  }
  std::memcpy(&message, received.data.data(), sizeof(message));
  const size_t fds = message.type == LinkMessageType::kAnnounce ? 1 : 0;
  if (received.fd_count != fds) {
    EndForCause("sent a message without its descriptor, or with others");
    return;
  }
  switch (message.type) {
    case LinkMessageType::kRing:
      rang_ = true;
      return;
    case LinkMessageType::kAnnounce:
      OnAnnouncement(message.arena, received.fds[0].get());
      return;
    case LinkMessageType::kWithdraw:
      arenas_.erase(message.arena);
      if (last_arena_ == message.arena) last_mapping_.reset();
      return;
  }
  EndForCause("sent an unknown message");
}

}  // namespace rdma::soft
