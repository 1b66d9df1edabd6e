// Registered memory for messages and attachments: few large arenas, carved into
// buffers, within a budget.
//
// Each arena is one memory region; one registration serves thousands of
// buffers. Requests of up to kLargestClassBytes come from size classes (powers
// of two), each with kHeadroomBytes in front for a frame's prefix; larger ones
// are runs of pages of their own, page-aligned, of any size that the budget
// allows.
//
//   RegisteredMemory memory(pd, budget_bytes);
//   absl::StatusOr<rpc::Buffer> buffer = memory.Allocate(1 << 20);
//   sge.lkey = RegisteredMemory::LkeyOf(*buffer);
//
// A buffer may outlive whoever allocated it, even its channel: an owner that is
// done with the memory waits until it is unused before it destroys it.
//
// Arenas are added on demand, each larger than the one before, by the thread
// that needs one and while others go on with what there is; a wholly free one
// is given back when the budget presses. Of each of the smaller size classes a
// few spare buffers come and go without the lock. What peers write to (joint
// memory) is made and given back by a thread of its own. Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_REGISTERED_MEMORY_H_
#define VERBENA_RDMA_TRANSPORT_REGISTERED_MEMORY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rdma_transport/cache_lines.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "rpc/buffer.h"

namespace rdma {

class RegisteredMemory {
 public:
  static constexpr size_t kHeadroomBytes = 256;
  static constexpr size_t kSmallestClassBytes = 1024;
  static constexpr size_t kLargestClassBytes = 1 << 20;
  static constexpr size_t kPageBytes = 64 << 10;  // unit of runs

  RegisteredMemory(ProtectionDomain* pd, uint64_t budget_bytes);
  // REQUIRES: no live buffers.
  ~RegisteredMemory();

  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  // `bytes` of registered memory; 0 gives an empty buffer. RESOURCE_EXHAUSTED
  // at the budget, or where the system has no more. Contents are undefined.
  absl::StatusOr<rpc::Buffer> Allocate(size_t bytes);

  // The same, without headroom, for what one connection's READs bring, where
  // its peer's CPU helps (Device::reads_jointly). No other `owner`, a number
  // that is not 0, gets memory of the same arenas. What there is none of yet a
  // thread of its own makes, for next time: RESOURCE_EXHAUSTED until then, and
  // where that would be more than half of the budget with all else that is
  // registered.
  absl::StatusOr<rpc::Buffer> AllocateJoint(uint64_t owner, size_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the arenas of that given back, those in use with their last buffer.
  // What a peer does not stop writing to counts in the budget until it does.
  void ReleaseJoint(uint64_t owner) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets go of a buffer that was sent, whatever became of that. Where CPUs of
  // this host have read it, and nobody else keeps it, its cache lines are
  // fetched back: it is the next to be written to, and that would wait for each
  // of them. For threads that are likely to be the ones to write it.
  void TakeBack(rpc::Buffer buffer);

  // Whether `buffer` is of this memory.
  bool Owns(const rpc::Buffer& buffer) const {
    return buffer.block() != nullptr && buffer.block()->domain() == this;
  }
  // Whether `bytes` in front of it are nobody else's and of its region, to be
  // written and sent with it. A slice of a large one has none: that may be
  // joint memory, where a peer could still write to them.
  bool HasRoomInFront(const rpc::Buffer& buffer, size_t bytes) const;
  // REQUIRES: Owns(buffer) of some RegisteredMemory.
  static ibv_mr* MrOf(const rpc::Buffer& buffer);
  static uint32_t LkeyOf(const rpc::Buffer& buffer) {
    return MrOf(buffer)->lkey;
  }

  // Calls `unused`, which may destroy this object, once no buffer lives: at
  // once, or on the thread that lets go of the last one. Nobody may allocate
  // from here on, until StayInUse().
  void WhenUnused(std::function<void()> unused) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes that back. False: it is too late, or nothing was said.
  bool StayInUse() ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t registered_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int kClasses = 11;  // 1 KiB ... 1 MiB
  static_assert((kSmallestClassBytes << (kClasses - 1)) == kLargestClassBytes);

  // Of Arena::owner: anybody; nobody any more.
  static constexpr uint64_t kShared = 0;
  static constexpr uint64_t kRetired = UINT64_MAX;
  struct Arena {
    std::unique_ptr<MemoryRegion> region;
    uint64_t owner = kShared;
    size_t used_bytes = 0;
  };
  // A run of pages inside an arena.
  struct Run {
    std::byte* data = nullptr;
    size_t bytes = 0;
    Arena* arena = nullptr;
  };
  class Block;
  struct Slab;
  // Slabs that have a free block, and how many of those have nothing but.
  struct SizeClass {
    Slab* partial = nullptr;
    int empty_slabs = 0;
  };

  // Joint memory's arenas, and what its thread is to do. What is being made or
  // freed, or is held, counts among the arenas and registered bytes.
  struct JointWork {
    size_t arenas = 0;
    // Whose arena is to be made (kShared: nobody's), how large, whether that is
    // under way, and until when none is made.
    uint64_t made_for = kShared;
    size_t bytes = 0;
    bool making = false;
    absl::Time none_before = absl::InfinitePast();
    // What is to be freed, and whether some is being freed.
    std::vector<std::unique_ptr<MemoryRegion>> released;
    bool freeing = false;
    // What that was tried with in vain, the oldest first; when it is again.
    std::deque<std::unique_ptr<MemoryRegion>> held;
    absl::Time held_until;
    std::thread thread;
    bool stops = false;
  };

  static int ClassOf(size_t bytes);
  static size_t ClassBytes(int index) { return kSmallestClassBytes << index; }

  // A spare block of the class, or null.
  Block* TakeSpare(int index);
  // False: there are enough.
  bool KeepAsSpare(Block* block);
  void GiveUpSpares(Block* in_place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Block*> TakeFromClass(int index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Block*> TakeRunBlock(size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Block* NewRunBlock(const Run& run);
  absl::Status AddSlab(int index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(Block* block) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReturnToSlab(Block* block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<Run> TakeRun(size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FindFreeRun(uint64_t owner, size_t bytes, Run* run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveRun(const Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void InsertFree(const Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseFree(std::map<std::byte*, Run>::iterator run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckBudget(size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds an arena with room for `bytes`; lets go of the lock meanwhile.
  absl::Status Grow(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartMakingJoint(uint64_t owner, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelMakingJoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The thread's.
  void DoJointWork() ABSL_LOCKS_EXCLUDED(mutex_);
  // Both let go of the lock meanwhile.
  void MakeJoint() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FreeJoint(std::unique_ptr<MemoryRegion> region)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets go of the lock until `bytes` fit into the budget or all is freed that
  // can be. False: there is nothing to wait for, or it takes too long.
  bool WaitForJointWork(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of its size, which is accounted for.
  void AddArena(std::unique_ptr<MemoryRegion> region, uint64_t owner)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseEmptySlabs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of all owners, or of this one.
  void ReleaseFreeArenas(uint64_t owner = kShared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  using ArenaMap = std::map<std::byte*, std::unique_ptr<Arena>>;
  // REQUIRES: nothing of it is used. Returns the next one.
  ArenaMap::iterator ReleaseArena(ArenaMap::iterator arena)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retire(Arena& arena) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ProtectionDomain* const pd_;
  const int access_;  // of an arena's MR
  const bool cpus_read_;
  const uint64_t budget_bytes_;
  LineFetcher fetcher_;

  // A cache line of them for each class. A spare block is in use as far as its
  // slab knows, and live. Devices tell of sends in batches, so that one call at
  // a time has several buffers.
  static constexpr int kClassesWithSpares = 7;  // up to 64 KiB
  static constexpr int kSpares = 8;
  using Spares = std::array<std::atomic<Block*>, kSpares>;
  alignas(64) std::array<Spares, kClassesWithSpares> spares_{};
  static Block* const kClosed;  // in a slot: nothing may be kept here

  mutable absl::Mutex mutex_;
  ArenaMap arenas_ ABSL_GUARDED_BY(mutex_);
  std::map<std::byte*, Run> free_by_address_ ABSL_GUARDED_BY(mutex_);
  // By the arena's owner, the size, and the address.
  std::set<std::tuple<uint64_t, size_t, std::byte*>> free_by_size_
      ABSL_GUARDED_BY(mutex_);
  std::array<SizeClass, kClasses> classes_ ABSL_GUARDED_BY(mutex_);
  uint64_t registered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  JointWork joint_ ABSL_GUARDED_BY(mutex_);
  absl::CondVar joint_wake_;  // there is work, or its end
  size_t next_arena_bytes_ ABSL_GUARDED_BY(mutex_);
  bool growing_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t live_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void()> when_unused_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_REGISTERED_MEMORY_H_
