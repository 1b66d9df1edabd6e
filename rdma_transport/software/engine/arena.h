// Arenas: the memory that Device::AllocateMemory hands out. Each is one memory
// file, mapped here, that peers map as a whole once they need it.
//
// An arena's id is never used twice, so that what a peer remembers of a freed
// one can never stand for another.
//
//   absl::StatusOr<std::byte*> memory =
//       arenas.Allocate(64 << 20, MemoryUse::kLocal);
//   std::shared_ptr<Arena> arena = arenas.Find(addr, length);  // or null
//
// Thread rule: thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ARENA_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/software/engine/memfd.h"

namespace rdma::soft {

class Arena {
 public:
  Arena(uint32_t id, MemoryUse use, Segment segment)
      : id_(id), use_(use), segment_(std::move(segment)) {}

  uint32_t id() const { return id_; }
  MemoryUse use() const { return use_; }
  std::byte* base() const { return segment_.base(); }
  size_t bytes() const { return segment_.bytes(); }
  // What a link's peer maps it by, for writing where that is its use, or where
  // it was given to this link. `opened` holds it where it is not the arena's.
  // -1: the system has none to give.
  int FdFor(uint64_t link, UniqueFd* opened) const {
    if (use_ != MemoryUse::kJointReads || link == joint_link()) {
      return segment_.fd();
    }
    *opened = segment_.OpenReadOnly();
    return opened->get();
  }

  // Of kJointReads: from now on it is for READs of this link (Link::serial)
  // alone. False: it is another one's.
  bool GiveTo(uint64_t link) {
    uint64_t before = 0;
    return joint_link_.compare_exchange_strong(before, link) || before == link;
  }
  // 0: nobody's, or of another use.
  uint64_t joint_link() const { return joint_link_.load(); }

  // Every peer gets it as soon as it is connected: some memory region of it
  // grants remote access.
  bool open_to_peers() const {
    return open_to_peers_.load(std::memory_order_acquire);
  }
  void OpenToPeers() { open_to_peers_.store(true, std::memory_order_release); }

 private:
  const uint32_t id_;
  const MemoryUse use_;
  const Segment segment_;
  std::atomic<bool> open_to_peers_{false};
  std::atomic<uint64_t> joint_link_{0};
};

class ArenaTable {
 public:
  // RESOURCE_EXHAUSTED: no memory, or kMaxArenas are there.
  absl::StatusOr<std::byte*> Allocate(size_t bytes, MemoryUse use);

  // Takes the arena that starts at `memory` out; null where none does. Its
  // memory goes with the last reference.
  std::shared_ptr<Arena> Remove(void* memory);

  // The arena that holds all of [addr, addr + length); null where none does.
  std::shared_ptr<Arena> Find(const void* addr, size_t length) const;
  std::shared_ptr<Arena> FindById(uint32_t id) const;

  std::vector<std::shared_ptr<Arena>> OpenToPeers() const;

 private:
  mutable std::mutex mutex_;
  uint32_t next_id_ = 1;  // guarded by mutex_, as all below
  std::map<const std::byte*, std::shared_ptr<Arena>> by_base_;
  std::unordered_map<uint32_t, std::shared_ptr<Arena>> by_id_;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_ARENA_H_
