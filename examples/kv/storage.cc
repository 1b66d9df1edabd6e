#include "examples/kv/storage.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "examples/kv/limits.h"
#include "examples/kv/storage_shard.h"

namespace kv {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr int kMaxShards = 4096;

// The memory that a chain keeps from being used otherwise.
uint64_t MemoryOf(const rpc::BufferChain& chain) {
  uint64_t bytes = 0;
  const rpc::BufferBlock* last = nullptr;
  for (const rpc::Buffer& buffer : chain.buffers()) {
    // Neighbours may be slices of one block.
    if (buffer.block() == last) continue;
    last = buffer.block();
    bytes += last == nullptr ? buffer.size() : last->capacity();
  }
  return bytes;
}

absl::Status CheckKey(std::string_view key) {
  if (key.empty()) {
    return absl::InvalidArgumentError(
        "the key is empty: a key has 1 byte at least");
  }
  if (key.size() > kMaxKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the key has ", key.size(), " bytes; the limit is ", kMaxKeyBytes));
  }
  return absl::OkStatus();
}

// The keys of one shard in order, fetched in batches: between two batches the
// shard is unlocked, so that a long List holds no writer up.
class ShardCursor {
 public:
  ShardCursor(const StorageShard& shard, std::string_view prefix,
              const ListStart& start, size_t batch)
      : shard_(shard), prefix_(prefix), batch_(batch) {
    Fetch(start);
  }

  bool done() const { return next_ == entries_.size(); }
  const std::string& key() const { return entries_[next_].key; }

  ListEntry Take() {
    ListEntry entry = std::move(entries_[next_++]);
    if (done() && more_) Fetch({.key = entry.key, .after = true});
    return entry;
  }

 private:
  void Fetch(const ListStart& start) {
    entries_.clear();
    next_ = 0;
    more_ = shard_.Collect(prefix_, start, batch_, &entries_);
  }

  const StorageShard& shard_;
  const std::string_view prefix_;
  const size_t batch_;
  std::vector<ListEntry> entries_;
  size_t next_ = 0;
  bool more_ = false;
};

struct LaterKey {
  bool operator()(const ShardCursor* a, const ShardCursor* b) const {
    return a->key() > b->key();
  }
};

}  // namespace

Storage::Storage(const StorageOptions& options)
    : memory_limit_bytes_(options.memory_limit_bytes) {
  const int shards = std::clamp(options.shards, 1, kMaxShards);
  shards_.reserve(shards);
  for (int i = 0; i < shards; ++i) {
    shards_.push_back(std::make_unique<StorageShard>(options.version_base));
  }
}

Storage::~Storage() = default;

StorageShard& Storage::ShardOf(std::string_view key) const {
  // The shard's table uses the low bits of the same hash: use others here.
  const uint64_t hash = std::hash<std::string_view>()(key);
  return *shards_[(hash >> 40) % shards_.size()];
}

std::optional<StoredValue> Storage::Get(std::string_view key) {
  StorageShard& shard = ShardOf(key);
  shard.gets.fetch_add(1, kRelaxed);
  absl::ReaderMutexLock lock(&shard.mutex);
  const StorageNode* node = shard.Find(key);
  if (node == nullptr) return std::nullopt;
  shard.hits.fetch_add(1, kRelaxed);
  return StoredValue{node->value, node->version};
}

absl::StatusOr<uint64_t> Storage::Put(std::string_view key,
                                      rpc::BufferChain value) {
  ShardOf(key).puts.fetch_add(1, kRelaxed);
  absl::StatusOr<SwapResult> result = Set(key, std::move(value), std::nullopt);
  if (!result.ok()) return result.status();
  return result->version;
}

absl::StatusOr<SwapResult> Storage::CompareAndSwap(std::string_view key,
                                                   uint64_t expected_version,
                                                   rpc::BufferChain value) {
  ShardOf(key).compare_and_swaps.fetch_add(1, kRelaxed);
  return Set(key, std::move(value), expected_version);
}

absl::StatusOr<SwapResult> Storage::Set(
    std::string_view key, rpc::BufferChain value,
    std::optional<uint64_t> expected_version) {
  if (absl::Status status = CheckKey(key); !status.ok()) return status;
  const uint64_t value_bytes = value.size();
  const uint64_t new_bytes = key.size() + MemoryOf(value) + kKeyOverheadBytes;
  StorageShard& shard = ShardOf(key);
  uint64_t new_version = 0;
  {
    absl::MutexLock lock(&shard.mutex);
    const StorageNode* node = shard.Find(key);
    const uint64_t version = node == nullptr ? 0 : node->version;
    if (expected_version.has_value() && *expected_version != version) {
      return SwapResult{.swapped = false, .version = version};
    }
    if (Recharge(node == nullptr ? 0 : node->memory_bytes, new_bytes)) {
      new_version = shard.Set(key, &value, new_bytes);
      if (observer_ != nullptr) {
        observer_->OnChange(
            {.key = key, .version = new_version, .value_bytes = value_bytes});
      }
    }
  }
  if (new_version != 0) {
    if (observer_ != nullptr) observer_->AfterChange();
    return SwapResult{.swapped = true, .version = new_version};
  }
  rejected_for_memory_.fetch_add(1, kRelaxed);
  return absl::ResourceExhaustedError(absl::StrCat(
      "the value of ", value_bytes, " bytes needs ", new_bytes,
      " bytes of memory, and ", memory_used_bytes_.load(kRelaxed), " of ",
      memory_limit_bytes_,
      " are in use: delete keys, or start the server with a larger "
      "--memory_limit_bytes"));
}

bool Storage::Recharge(uint64_t old_bytes, uint64_t new_bytes) {
  if (new_bytes <= old_bytes) {
    memory_used_bytes_.fetch_sub(old_bytes - new_bytes, kRelaxed);
    return true;
  }
  const uint64_t more = new_bytes - old_bytes;
  uint64_t used = memory_used_bytes_.load(kRelaxed);
  do {
    if (more > memory_limit_bytes_ - used) return false;
  } while (
      !memory_used_bytes_.compare_exchange_weak(used, used + more, kRelaxed));
  return true;
}

bool Storage::Delete(std::string_view key) {
  StorageShard& shard = ShardOf(key);
  shard.deletes.fetch_add(1, kRelaxed);
  std::unique_ptr<StorageNode> node;  // freed after the lock
  {
    absl::MutexLock lock(&shard.mutex);
    node = shard.Remove(key);
    if (node == nullptr) return false;
    Recharge(node->memory_bytes, 0);
    if (observer_ != nullptr) {
      observer_->OnChange({.key = key,
                           .deleted = true,
                           .version = node->version,
                           .value_bytes = node->value.size()});
    }
  }
  if (observer_ != nullptr) observer_->AfterChange();
  return true;
}

absl::StatusOr<ListPage> Storage::List(std::string_view prefix,
                                       uint32_t page_size,
                                       std::string_view page_token) {
  lists_.fetch_add(1, kRelaxed);
  // A page token is the last key of the page before.
  if (!page_token.empty() && !page_token.starts_with(prefix)) {
    return absl::InvalidArgumentError(
        "the page token is not of a List with this prefix: pass the "
        "next_page_token of the last response, with the prefix of its request");
  }
  if (page_size == 0) page_size = kDefaultPageSize;
  page_size = std::min(page_size, kMaxPageSize);
  const ListStart start = page_token.empty()
                              ? ListStart{.key = prefix, .after = false}
                              : ListStart{.key = page_token, .after = true};

  // A k-way merge. Keys are spread evenly, so that most shards are asked once.
  const size_t batch = page_size / shards_.size() * 5 / 4 + 4;
  std::vector<std::unique_ptr<ShardCursor>> cursors;
  std::priority_queue<ShardCursor*, std::vector<ShardCursor*>, LaterKey> queue;
  for (const std::unique_ptr<StorageShard>& shard : shards_) {
    auto cursor = std::make_unique<ShardCursor>(*shard, prefix, start, batch);
    if (cursor->done()) continue;
    queue.push(cursor.get());
    cursors.push_back(std::move(cursor));
  }

  ListPage page;
  size_t key_bytes = 0;
  while (!queue.empty() && page.entries.size() < page_size &&
         key_bytes < kMaxPageKeyBytes) {
    ShardCursor* cursor = queue.top();
    queue.pop();
    page.entries.push_back(cursor->Take());
    key_bytes += page.entries.back().key.size();
    if (!cursor->done()) queue.push(cursor);
  }
  if (!queue.empty()) page.next_page_token = page.entries.back().key;
  return page;
}

StorageStats Storage::stats() const {
  StorageStats stats{
      .memory_used_bytes = memory_used_bytes_.load(kRelaxed),
      .memory_limit_bytes = memory_limit_bytes_,
      .lists = lists_.load(kRelaxed),
      .rejected_for_memory = rejected_for_memory_.load(kRelaxed),
  };
  for (const std::unique_ptr<StorageShard>& shard : shards_) {
    stats.gets += shard->gets.load(kRelaxed);
    stats.hits += shard->hits.load(kRelaxed);
    stats.puts += shard->puts.load(kRelaxed);
    stats.deletes += shard->deletes.load(kRelaxed);
    stats.compare_and_swaps += shard->compare_and_swaps.load(kRelaxed);
    absl::ReaderMutexLock lock(&shard->mutex);
    stats.keys += shard->key_count();
    stats.value_bytes += shard->value_bytes();
  }
  return stats;
}

}  // namespace kv
