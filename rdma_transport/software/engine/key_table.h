// The keys of a device: which rkey (and lkey) grants which access to which part
// of which arena. The table lies in memory that peers map read-only, because in
// this device the requester carries out READ and WRITE itself, and looks up the
// key that it was given in the peer's table.
//
// A key is an index into the table and, in its low 8 bits, the consumer's part
// that ibv_inc_rkey(3) counts up. Memory regions and memory windows take one
// entry each.
//
// Revoking against a running copy. `state` holds the key and a generation; it
// is the only word that decides, and the other fields hold still while it is
// set.
// - READ: copy, then look at `state` again (StillValid). A key that was revoked
//   meanwhile fails the READ, so the owner need not wait for anybody.
// - WRITE, atomics: what was written cannot be taken back. The requester first
//   publishes the key that it writes under (Link::PublishWriting), and the
//   owner of a revoked key waits until no peer writes under it
//   (Link::PeersWritingKey).
//
//   KeyRange range;
//   if (!peer_keys.Find(rkey, &range)) ...            // REM_ACCESS_ERR
//   if (!range.Allows(pd, qp_num, IBV_ACCESS_REMOTE_READ, address, bytes)) ...
//   memcpy(...);
//   if (!peer_keys.StillValid(range)) ...             // REM_ACCESS_ERR
//
// Thread rule: KeyTable is thread-safe, and its lookups take no lock.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_KEY_TABLE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_KEY_TABLE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/base/optimization.h"

namespace rdma::soft {

// One key, as it lies in shared memory: a cache line.
struct alignas(64) KeyEntry {
  std::atomic<uint64_t> state;  // generation << 32 | key; low half 0: no key
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> arena_offset;
  std::atomic<uint32_t> arena;
  std::atomic<uint32_t> access;
  std::atomic<uint32_t> pd;
  std::atomic<uint32_t> qp_num;  // the only one that may use it; 0: all
  std::byte unused[16];
};
static_assert(sizeof(KeyEntry) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Of all memory of this process (Device::reserved_lkey). Entry 0 is no key's.
inline constexpr uint32_t kReservedLkey = 1;
// In KeyEntry::access beside ibv_access_flags: a window, which is no lkey.
inline constexpr uint32_t kWindowKey = 1u << 31;
// A region of joint READs (MemoryUse::kJointReads): where they go to, the QP
// that they read from may write.
inline constexpr uint32_t kJointKey = 1u << 30;
// Of ibv_access_flags, with which a peer changes memory: REMOTE_WRITE and
// REMOTE_ATOMIC.
inline constexpr uint32_t kRemoteWriting = 1u << 1 | 1u << 3;

// What a key stood for when it was looked up.
struct KeyRange {
  uint64_t state = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t arena_offset = 0;
  uint32_t arena = 0;
  uint32_t access = 0;
  uint32_t pd = 0;
  uint32_t qp_num = 0;

  uint32_t key() const { return static_cast<uint32_t>(state); }
  bool Contains(uint64_t at, uint64_t bytes) const {
    return at >= address && bytes <= length && at - address <= length - bytes;
  }
  // Whether a QP of this number and PD may do `needed` (ibv_access_flags)
  // there.
  bool Allows(uint32_t its_pd, uint32_t its_qp_num, uint32_t needed,
              uint64_t at, uint64_t bytes) const {
    return pd == its_pd && (qp_num == 0 || qp_num == its_qp_num) &&
           (access & needed) == needed && Contains(at, bytes);
  }
  // REQUIRES: Contains(at, ...).
  uint64_t OffsetOf(uint64_t at) const { return arena_offset + (at - address); }
};

// Somebody's table, for looking up: one's own, or a peer's mapping, in which
// any value may stand.
class KeyView {
 public:
  KeyView() = default;
  KeyView(const KeyEntry* entries, uint32_t count)
      : entries_(entries), count_(count) {}

  // False: no such key now.
  bool Find(uint32_t key, KeyRange* range) const {
    const uint32_t index = key >> 8;
    if (index == 0 || index >= count_) return false;
    const KeyEntry& entry = entries_[index];
    range->state = entry.state.load(std::memory_order_acquire);
    if (range->key() != key) return false;
    range->address = entry.address.load(std::memory_order_relaxed);
    range->length = entry.length.load(std::memory_order_relaxed);
    range->arena_offset = entry.arena_offset.load(std::memory_order_relaxed);
    range->arena = entry.arena.load(std::memory_order_relaxed);
    range->access = entry.access.load(std::memory_order_relaxed);
    range->pd = entry.pd.load(std::memory_order_relaxed);
    range->qp_num = entry.qp_num.load(std::memory_order_relaxed);
    return true;
  }

  // Find and KeyRange::Allows in one, for any QP of the PD and no window: what
  // a local key is asked for.
  bool AllowsLocal(uint32_t key, uint32_t pd, uint32_t needed, uint64_t at,
                   uint64_t bytes) const {
    const uint32_t index = key >> 8;
    if (index >= count_) return false;
    const KeyEntry& entry = entries_[index];
    if (static_cast<uint32_t>(entry.state.load(std::memory_order_acquire)) !=
            key ||
        key == 0) {
      return false;
    }
    const uint64_t address = entry.address.load(std::memory_order_relaxed);
    const uint64_t length = entry.length.load(std::memory_order_relaxed);
    return entry.pd.load(std::memory_order_relaxed) == pd &&
           (entry.access.load(std::memory_order_relaxed) &
            (needed | kWindowKey)) == needed &&
           at >= address && bytes <= length && at - address <= length - bytes;
  }

  // Whether the entry of `key` lets peers write, or did so last: only then can
  // somebody be writing under it. Any number may be asked for.
  bool MayBeWritten(uint32_t key) const {
    const uint32_t index = key >> 8;
    return index < count_ &&
           (entries_[index].access.load(std::memory_order_relaxed) &
            (kRemoteWriting | kJointKey)) != 0;
  }

  // Whether the key was valid all the time since Find: what was read under it
  // since then is what it granted.
  bool StillValid(const KeyRange& range) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return entries_[range.key() >> 8].state.load(std::memory_order_relaxed) ==
           range.state;
  }

  const KeyEntry* entries() const { return entries_; }

 private:
  const KeyEntry* entries_ = nullptr;
  uint32_t count_ = 0;
};

// A key of one's own table that was found to be allowed for what is asked each
// time (a PD, and an access to it). While it stands for the same, which its
// state tells, less has to be looked at.
class KnownKey {
 public:
  // AllowsLocal, for a key that it was learnt of; false: ask that.
  // REQUIRES: no region wraps around the end of the address space.
  bool Allows(uint32_t key, uint64_t at, uint64_t bytes) const {
    return ABSL_PREDICT_TRUE(key == static_cast<uint32_t>(state_)) &&
           ABSL_PREDICT_TRUE(entry_->state.load(std::memory_order_acquire) ==
                             state_) &&
           ABSL_PREDICT_TRUE(bytes <= length_) &&
           ABSL_PREDICT_TRUE(at - address_ <= length_ - bytes);
  }
  // AllowsLocal, always, which makes the key the known one.
  bool Learn(const KeyView& keys, uint32_t key, uint32_t pd, uint32_t needed,
             uint64_t at, uint64_t bytes);

 private:
  static const KeyEntry kNoEntry;

  const KeyEntry* entry_ = &kNoEntry;
  uint64_t state_ = uint64_t{1} << 32;  // no entry's
  uint64_t address_ = 0;
  uint64_t length_ = 0;
};

// The known ones of several keys that take turns, as those of a shared receive
// queue's memory do: each has its place, by its entry.
class KnownKeys {
 public:
  KnownKey& PlaceOf(uint32_t key) { return places_[(key >> 8) % kPlaces]; }

 private:
  // A busy connection's receives lie in nine regions.
  static constexpr uint32_t kPlaces = 16;

  KnownKey places_[kPlaces];
};

// A device's own table.
class KeyTable {
 public:
  // `entries` is zeroed memory that outlives this. Entry 0 stays unused.
  KeyTable(KeyEntry* entries, uint32_t count);

  // Takes a free entry, with no access yet, and returns the key to start with;
  // nothing where the table is full.
  std::optional<uint32_t> Allocate();
  // The entry's next owner starts behind the last key that stood for it, so
  // that who still holds that one misses for as long as 8 bits can tell.
  // REQUIRES: the entry is not granted.
  void Free(uint32_t last_key);

  // Makes `key` valid. `range.state` is ignored.
  // REQUIRES: the entry was allocated and is not granted.
  void Grant(uint32_t key, const KeyRange& range);
  // Makes the entry's key invalid. On return no new access starts; see above
  // for running ones.
  void Revoke(uint32_t key);

  KeyView view() const { return KeyView(entries_, count_); }

 private:
  KeyEntry* const entries_;
  const uint32_t count_;
  std::mutex mutex_;
  uint32_t next_unused_ = 1;    // guarded by mutex_
  std::vector<uint32_t> free_;  // indices; guarded by mutex_
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_KEY_TABLE_H_
