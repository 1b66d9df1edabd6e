// One shard of the storage: a hash table and an ordered index over the same
// nodes. Storage owns the shards, picks one by the key's hash, and does the
// accounting of memory; nobody else uses this.
//
// Thread rule: hold `mutex` (shared for functions that are const, else
// exclusive). The counters are atomics beside it, so that a Get, which holds
// the lock shared, can count itself.
#ifndef VERBENA_EXAMPLES_KV_STORAGE_SHARD_H_
#define VERBENA_EXAMPLES_KV_STORAGE_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "examples/kv/storage.h"
#include "rpc/buffer.h"

namespace kv {

// A key and what it holds. Its address is stable, and its key never changes:
// the table and the index refer to it by views.
struct StorageNode {
  std::string key;
  rpc::BufferChain value;
  uint64_t version = 0;
  uint64_t memory_bytes = 0;  // what the limit was charged
};

// A position in the order of keys: `key` itself, or just behind it.
struct ListStart {
  std::string_view key;
  bool after = false;
};

// alignas: shards are written by different threads, and share no cache line.
class alignas(64) StorageShard {
 public:
  explicit StorageShard(uint64_t version_base) : last_version_(version_base) {}
  StorageShard(const StorageShard&) = delete;
  StorageShard& operator=(const StorageShard&) = delete;

  // Null where there is none; valid while the lock is held.
  const StorageNode* Find(std::string_view key) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex);

  // Sets `key`, with the next version, and returns that version. `*value` is
  // swapped for the value that the key had (empty if none), so that the caller
  // frees it after unlocking: giving back megabytes takes time.
  uint64_t Set(std::string_view key, rpc::BufferChain* value,
               uint64_t memory_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Takes a key out; null where there is none.
  std::unique_ptr<StorageNode> Remove(std::string_view key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Appends up to `count` entries with `prefix`, in order, from `start` on.
  // Returns false when it has reached the end of them. Takes the lock.
  bool Collect(std::string_view prefix, const ListStart& start, size_t count,
               std::vector<ListEntry>* out) const ABSL_LOCKS_EXCLUDED(mutex);

  size_t key_count() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return nodes_.size();
  }
  uint64_t value_bytes() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return value_bytes_;
  }

  mutable absl::Mutex mutex;

  std::atomic<uint64_t> gets{0};
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> puts{0};
  std::atomic<uint64_t> deletes{0};
  std::atomic<uint64_t> compare_and_swaps{0};

 private:
  // Keys are views of the nodes' own.
  absl::flat_hash_map<std::string_view, std::unique_ptr<StorageNode>,
                      std::hash<std::string_view>>
      nodes_ ABSL_GUARDED_BY(mutex);
  absl::btree_map<std::string_view, const StorageNode*> index_
      ABSL_GUARDED_BY(mutex);
  uint64_t last_version_ ABSL_GUARDED_BY(mutex);
  uint64_t value_bytes_ ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_STORAGE_SHARD_H_
