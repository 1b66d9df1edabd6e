// The rendezvous of large messages: what this side offers to its peer, and what
// it reads of the peer's offers. See docs/wire_format.md, "Rendezvous".
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_RENDEZVOUS_H_
#define VERBENA_RDMA_TRANSPORT_RENDEZVOUS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rdma_transport/arriving_message.h"
#include "rdma_transport/call.h"
#include "rdma_transport/device_context.h"
#include "rdma_transport/frame.h"
#include "rdma_transport/growing_message.h"
#include "rdma_transport/joint_memory.h"
#include "rdma_transport/messages_being_read.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rpc/buffer.h"

namespace rdma {

// What moving so much may take at most: 1 s for each 16 MiB begun.
inline absl::Duration TimeToMove(uint64_t bytes) {
  return absl::Seconds(1 + bytes / (16 << 20));
}

// Of a message in parts of so many bytes, the least that one part brings, but
// for the last.
constexpr uint64_t LeastPartBytes(uint64_t total) {
  return total / (kMaxSegmentsInParts / 2) + 1;
}

// Which frame of which call an offer came with.
struct OfferKey {
  uint32_t slot = 0;
  uint32_t call_sequence = 0;

  bool operator==(const OfferKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const OfferKey& key) {
    return H::combine(std::move(h), key.slot, key.call_sequence);
  }
};

// Memory that the peer may READ: one window for each segment (none where the
// device has no windows). The buffers stay until the windows are invalid again.
struct Offer {
  uint64_t id = 0;
  OfferKey key;
  rpc::CallHandle call;  // hears OnSent
  bool notify_sent = false;
  std::vector<rpc::Buffer> buffers;
  std::vector<Segment> segments;
  std::vector<size_t> segment_buffers;  // which buffer a segment begins in
  std::vector<std::unique_ptr<MemoryWindow>> windows;
  // Invalidations that were posted and have not completed.
  uint32_t pending_invalidations = 0;
  // When the peer must have answered; set once the call is over.
  int64_t expiry_ns = INT64_MAX;
  // The message's, while there is more of it to offer, and what is offered of
  // it. Its buffer is the first.
  std::shared_ptr<GrowingMessage> growing;
  uint64_t offered_bytes = 0;

  Offer() = default;
  Offer(Offer&&) = default;
  Offer& operator=(Offer&&) = delete;
  ~Offer() { StopGrowing(); }

  // Adds a part: what lies side by side in one MR becomes one segment.
  // REQUIRES: registered buffers, at most kMaxSegments.
  void AddChain(const rpc::BufferChain& chain);
  // The same for a message that grows: what is there of it. REQUIRES: the first
  // part, one buffer.
  void AddGrowing(const rpc::Buffer& buffer,
                  std::shared_ptr<GrowingMessage> message);
  // Whether so much has come since that it is worth a part: there may not be
  // too many of them.
  bool HasMore() const;
  // Adds it. False: there is none.
  bool AddWritten();
  // No more of it is offered.
  void StopGrowing() {
    if (growing != nullptr) std::exchange(growing, nullptr)->Detach();
  }
  // Of its buffers.
  uint64_t bytes() const;
};

// The offers of one connection, in the order made. Offers of one call are
// answered in order.
class OfferTable {
 public:
  Offer& Add(Offer offer);
  Offer* Find(uint64_t id);
  // The oldest one of a call that is not being revoked.
  Offer* FindOldest(const OfferKey& key);
  // Those of a call that are not being revoked. Valid until the table changes.
  const std::deque<uint64_t>& Unanswered(const OfferKey& key) const;
  // Of all calls.
  size_t unanswered() const;
  // No more is offered of any.
  void StopGrowing();
  // It is answered: FindOldest finds the next one from now on.
  void MarkAnswered(Offer& offer);
  void Remove(uint64_t id);
  bool empty() const { return offers_.empty(); }
  // What all of them hold.
  uint64_t bytes() const { return bytes_; }
  int64_t EarliestExpiryNs() const;
  // Frees the windows of all offers, so that nobody reads through them any
  // more. REQUIRES: the offers are only to be cleared after that.
  void ReleaseWindows();
  void Clear();

 private:
  uint64_t next_id_ = 1;
  uint64_t bytes_ = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Offer>> offers_;
  absl::flat_hash_map<OfferKey, std::deque<uint64_t>> by_call_;
};

// One chunk of an IncomingRead: what one READ work request copies.
struct ReadChunk {
  std::byte* to = nullptr;
  uint32_t lkey = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  uint32_t bytes = 0;
  uint64_t whole_bytes = 0;  // of the memory that it is a chunk of
};

// An offer of the peer, on its way into this side's memory.
class IncomingRead {
 public:
  // Takes the segments over; nothing is allocated yet. As long as it lives it
  // is one of `all`.
  IncomingRead(const FrameView& view, rpc::CallHandle call, HeldFrame* held,
               MessagesBeingRead* all);
  ~IncomingRead();
  IncomingRead(const IncomingRead&) = delete;
  IncomingRead& operator=(const IncomingRead&) = delete;

  // Of a message in parts, the whole.
  uint64_t message_bytes() const { return message_.bytes; }
  uint64_t attachment_bytes() const { return attachment_.bytes; }

  // Whether there is an attachment that the peer may help to copy.
  bool may_be_joint() const {
    return attachment_.bytes >= JointMemory::kFewestBytes;
  }
  // Allocates memory for what was offered, one buffer for each part; nothing
  // where there is not enough for both.
  // `joint`: for an attachment, where there is some; null: never.
  absl::Status Allocate(RegisteredMemory& memory, JointMemory* joint = nullptr);

  // Whether there are more segments than the message has bytes, or than there
  // may be, or such that are too short.
  bool offers_too_much() const;
  // Further segments of a message in parts. False: offers_too_much.
  [[nodiscard]] bool AddPart(absl::Span<const std::byte> encoded);
  // Whether parts are still to come.
  bool waits_for_parts() const {
    return !abandoned_ && message_.offered < message_.bytes;
  }
  // When the last one must have come; the connection's to set.
  int64_t complete_by_ns = 0;

  // Instead of Allocate: the message is parsed while it is being read, chunk by
  // chunk.
  void ParseWhatArrives(std::shared_ptr<ArrivingMessage> arriving);
  ArrivingMessage* arriving() const { return arriving_.get(); }

  // The next piece to read, of at most `limit` bytes. REQUIRES: CanReadOn().
  ReadChunk NextChunk(uint32_t limit);
  bool HasChunk() const {
    return !abandoned_ && (message_.HasChunk() || attachment_.HasChunk());
  }
  bool CanReadOn() const {
    return HasChunk() && (arriving_ == nullptr || arriving_->HasRoom());
  }
  bool all_issued() const { return !HasChunk() && !waits_for_parts(); }
  void ChunkDone();
  bool finished() const { return all_issued() && outstanding_ == 0; }

  // The call is over: no further chunks.
  void Abandon();
  bool abandoned() const { return abandoned_; }

  // Moves what was read into the frame that waits for it.
  void MoveInto(rpc::IncomingFrame& frame);

  const OfferKey& key() const { return key_; }
  rpc::CallHandle call() const { return call_; }
  HeldFrame* held() const { return held_; }
  // It has been delivered.
  HeldFrame* TakeHeld() { return std::exchange(held_, nullptr); }
  // The key to invalidate with the done: the first segment's; 0 where none has
  // come.
  uint32_t done_rkey() const { return done_rkey_; }

 private:
  struct Part {
    uint64_t bytes = 0;    // in all
    uint64_t offered = 0;  // of them, in segments so far
    std::vector<Segment> segments;
    size_t current = 0;    // segment to read
    uint64_t at = 0;       // bytes into it
    uint64_t read_at = 0;  // bytes into the buffer
    rpc::Buffer buffer;

    bool HasChunk() const { return current < segments.size(); }
  };

  void AddSegments(absl::Span<const std::byte> encoded, Part* part);

  const OfferKey key_;
  const rpc::CallHandle call_;
  HeldFrame* held_;
  MessagesBeingRead* const all_;
  Part message_;
  Part attachment_;
  std::shared_ptr<ArrivingMessage> arriving_;  // the message, or null
  uint32_t done_rkey_ = 0;
  uint32_t outstanding_ = 0;
  bool abandoned_ = false;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_RENDEZVOUS_H_
