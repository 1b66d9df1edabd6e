// What is posted to a QP's send queue, and when it can be forgotten.
//
// Slots are accounted here, apart from the peer's credits: a credit may come
// back before the completion of the send that used it. A slot is free again
// when its work request, or a later one that was signaled, has completed: that
// is how devices count, and posting beyond fails with ENOMEM. Work request ids
// are odd numbers (receives carry addresses, which are even).
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_SEND_QUEUE_H_
#define VERBENA_RDMA_TRANSPORT_SEND_QUEUE_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rpc/buffer.h"

namespace rdma {

class IncomingRead;

// One posted work request: what it keeps alive.
struct SendEntry {
  rpc::BufferChain buffers;
  bool front_of_ring = false;    // of a FrontRing's, beside the buffers
  IncomingRead* read = nullptr;  // of a READ
  uint64_t revoked_offer = 0;    // of a LOCAL_INV that ends an offer, else 0

  // Nothing depends on its completion but its slot.
  bool IsPlain() const {
    return buffers.empty() && read == nullptr && revoked_offer == 0;
  }
};

class SendQueue {
 public:
  // A completion is asked for at least every so many work requests.
  static constexpr uint32_t kSignalEvery = 32;

  explicit SendQueue(uint32_t depth) { Resize(depth); }

  uint32_t depth() const { return depth_; }
  // REQUIRES: no more than `depth` slots are taken.
  void Resize(uint32_t depth) {
    std::vector<SendEntry> entries(std::bit_ceil(depth));
    for (uint64_t i = oldest_; i != next_; ++i) {
      entries[i & (entries.size() - 1)] = std::move(At(i));
    }
    entries_ = std::move(entries);
    depth_ = depth;
    FreeBefore(oldest_);
    signal_every_ = std::min(kSignalEvery, (depth + 1) / 2);
  }

  bool HasRoom(uint32_t count) const { return next_ + count <= end_; }
  uint32_t used() const { return static_cast<uint32_t>(next_ - oldest_); }
  bool empty() const { return next_ == oldest_; }
  // How many ever have.
  uint64_t completed() const { return oldest_; }
  // Whether nothing posted so far tells of the newest entries' completion.
  bool ends_unsignaled() const { return unsignaled_ > 0; }

  // Takes the next slot. REQUIRES: HasRoom(1). The work request must be posted
  // with the id, and signaled where `*signaled` says so (in: wanted anyway).
  SendEntry& Push(bool* signaled, uint64_t* wr_id) {
    PushPlain(signaled, wr_id);
    kept_end_ = next_;
    return At(next_ - 1);
  }
  // The same for one that keeps nothing alive.
  void PushPlain(bool* signaled, uint64_t* wr_id) {
    if (*signaled || ++unsignaled_ >= signal_every_) [[unlikely]] {
      *signaled = true;
      unsignaled_ = 0;
    }
    *wr_id = next_++ << 1 | 1;
  }

  // Takes the last `count` pushes back: their posting failed.
  void Unpush(uint32_t count) {
    while (count-- > 0) At(--next_) = SendEntry();
    // Whether what is newest now was signaled is not known any more.
    unsignaled_ = empty() ? 0 : 1;
  }

  // Handles the completion of `wr_id`: frees this entry and those before it,
  // oldest first, and gives `done(SendEntry&)` those that are not plain.
  template <typename Done>
  void Complete(uint64_t wr_id, Done&& done) {
    const uint64_t through = wr_id >> 1;
    while (oldest_ <= through && oldest_ < next_) {
      if (oldest_ >= kept_end_) {
        FreeBefore(std::min(through + 1, next_));
        return;
      }
      SendEntry& slot = At(oldest_);
      FreeBefore(oldest_ + 1);
      if (slot.IsPlain()) continue;
      // `done` may push, and so reuse the slot.
      SendEntry entry = std::exchange(slot, SendEntry());
      done(entry);
    }
  }

 private:
  void FreeBefore(uint64_t oldest) {
    oldest_ = oldest;
    end_ = oldest + depth_;
  }
  SendEntry& At(uint64_t number) {
    return entries_[number & (entries_.size() - 1)];
  }

  uint32_t depth_ = 0;
  uint32_t signal_every_ = 0;       // at least, of this depth
  std::vector<SendEntry> entries_;  // as many as the next power of two
  uint64_t oldest_ = 0;
  uint64_t next_ = 0;
  uint64_t end_ = 0;       // what next_ may become
  uint64_t kept_end_ = 0;  // entries from here on are plain
  uint32_t unsignaled_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_SEND_QUEUE_H_
