// The key-value server's memory: keys, values and versions in shards.
//
// A key's hash picks its shard. A shard is a hash table for Get and Put and an
// ordered index over the same nodes for List, under one reader-writer lock.
// Values are reference-counted chains (rpc/buffer.h): Get hands out a reference
// and not a copy, so that a value of any size costs the same few nanoseconds
// under the lock, and a value that is replaced while it is being sent lives
// until the sending is over.
//
//   kv::Storage storage({.memory_limit_bytes = uint64_t{1} << 30});
//   absl::StatusOr<uint64_t> version = storage.Put("key", std::move(chain));
//   std::optional<kv::StoredValue> value = storage.Get("key");
//
// Thread rule: every function may be called from any thread.
//
// Memory: the limit counts what is held, not what is useful: a value stands in
// buffers, and a buffer that is larger than what it holds counts whole. The sum
// over all shards never exceeds the limit.
#ifndef VERBENA_EXAMPLES_KV_STORAGE_H_
#define VERBENA_EXAMPLES_KV_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/buffer.h"

namespace kv {

class StorageShard;

struct StorageOptions {
  // More shards let more threads write at once; each costs a List one more
  // cursor. 1 to 4096.
  int shards = 16;

  uint64_t memory_limit_bytes = std::numeric_limits<uint64_t>::max();

  // Versions start above this. A server that passes the time makes versions
  // from before its restart unusable, as they should be.
  uint64_t version_base = 0;
};

// A value as Get gives it: shared with the storage, not to be written to.
struct StoredValue {
  rpc::BufferChain bytes;
  uint64_t version = 0;
};

struct SwapResult {
  bool swapped = false;
  uint64_t version = 0;  // the key's version now; 0: there is no such key
};

struct ListEntry {
  std::string key;
  uint64_t value_bytes = 0;
  uint64_t version = 0;
};

struct ListPage {
  std::vector<ListEntry> entries;  // by key
  std::string next_page_token;     // empty: the last page
};

struct StorageStats {
  uint64_t keys = 0;
  uint64_t value_bytes = 0;
  uint64_t memory_used_bytes = 0;
  uint64_t memory_limit_bytes = 0;
  uint64_t gets = 0;
  uint64_t hits = 0;
  uint64_t puts = 0;
  uint64_t deletes = 0;
  uint64_t compare_and_swaps = 0;
  uint64_t lists = 0;
  uint64_t rejected_for_memory = 0;
};

// As observers hear of it.
struct StorageChange {
  std::string_view key;
  bool deleted = false;
  // Since the change; of a key that was deleted: before it.
  uint64_t version = 0;
  uint64_t value_bytes = 0;
};

// Hears of every change. Any thread.
class StorageObserver {
 public:
  // While the key is locked: the changes of one key come in their order. Must
  // not wait, nor call the storage.
  virtual void OnChange(const StorageChange& change) = 0;
  // Afterwards, on the same thread, without any lock.
  virtual void AfterChange() = 0;

 protected:
  ~StorageObserver() = default;
};

class Storage {
 public:
  // What the limit counts for a key beside its bytes and its value's memory:
  // its node, its slots in the hash table and in the index.
  static constexpr uint64_t kKeyOverheadBytes = 192;

  explicit Storage(const StorageOptions& options);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // Null: none, as at first. REQUIRES: nothing is being changed.
  void SetObserver(StorageObserver* observer) { observer_ = observer; }

  // Nothing where there is no such key.
  std::optional<StoredValue> Get(std::string_view key);

  // Sets `key` and returns its new version. RESOURCE_EXHAUSTED at the memory
  // limit (the key keeps what it had), INVALID_ARGUMENT for a key that is empty
  // or over kMaxKeyBytes.
  absl::StatusOr<uint64_t> Put(std::string_view key, rpc::BufferChain value);

  // As Put, if the key has `expected_version` (0: if it does not exist).
  absl::StatusOr<SwapResult> CompareAndSwap(std::string_view key,
                                            uint64_t expected_version,
                                            rpc::BufferChain value);

  // False where there was no such key.
  bool Delete(std::string_view key);

  // One page of the keys that start with `prefix`; see ListRequest in kv.proto
  // for page_size, page_token and what holds under concurrent changes.
  // INVALID_ARGUMENT for a token that is not of this prefix.
  absl::StatusOr<ListPage> List(std::string_view prefix, uint32_t page_size,
                                std::string_view page_token);

  // Sums over the shards; exact when nothing is running.
  StorageStats stats() const;

 private:
  StorageShard& ShardOf(std::string_view key) const;
  // Put and CompareAndSwap; the latter has an `expected_version`.
  absl::StatusOr<SwapResult> Set(std::string_view key, rpc::BufferChain value,
                                 std::optional<uint64_t> expected_version);
  // Changes a charge of `old_bytes` into one of `new_bytes`; false, and nothing
  // changed, where the limit does not allow it.
  bool Recharge(uint64_t old_bytes, uint64_t new_bytes);

  const uint64_t memory_limit_bytes_;
  std::vector<std::unique_ptr<StorageShard>> shards_;
  StorageObserver* observer_ = nullptr;
  std::atomic<uint64_t> memory_used_bytes_{0};
  std::atomic<uint64_t> lists_{0};
  std::atomic<uint64_t> rejected_for_memory_{0};
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_STORAGE_H_
