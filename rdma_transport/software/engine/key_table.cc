#include "rdma_transport/software/engine/key_table.h"

namespace rdma::soft {

const KeyEntry KnownKey::kNoEntry = {};

bool KnownKey::Learn(const KeyView& keys, uint32_t key, uint32_t pd,
                     uint32_t needed, uint64_t at, uint64_t bytes) {
  KeyRange range;
  if (!keys.AllowsLocal(key, pd, needed, at, bytes)) return false;
  // What is read between two equal states is what they stand for.
  if (keys.Find(key, &range) &&
      (range.access & (needed | kWindowKey)) == needed && range.pd == pd &&
      keys.StillValid(range)) {
    entry_ = &keys.entries()[key >> 8];
    state_ = range.state;
    address_ = range.address;
    length_ = range.length;
  }
  return true;
}

KeyTable::KeyTable(KeyEntry* entries, uint32_t count)
    : entries_(entries), count_(count) {}

std::optional<uint32_t> KeyTable::Allocate() {
  std::lock_guard lock(mutex_);
  uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (next_unused_ < count_) {
    index = next_unused_++;
  } else {
    return std::nullopt;
  }
  // See Free.
  const uint64_t generation =
      entries_[index].state.load(std::memory_order_relaxed) >> 32;
  return index << 8 | (generation & 0xff);
}

void KeyTable::Free(uint32_t last_key) {
  std::lock_guard lock(mutex_);
  KeyEntry& entry = entries_[last_key >> 8];
  uint64_t generation = entry.state.load(std::memory_order_relaxed) >> 32;
  // On to the next generation that ends in the key's successor.
  generation += 1 + static_cast<uint8_t>(last_key - generation);
  entry.state.store(generation << 32, std::memory_order_relaxed);
  free_.push_back(last_key >> 8);
}

void KeyTable::Grant(uint32_t key, const KeyRange& range) {
  KeyEntry& entry = entries_[key >> 8];
  entry.address.store(range.address, std::memory_order_relaxed);
  entry.length.store(range.length, std::memory_order_relaxed);
  entry.arena_offset.store(range.arena_offset, std::memory_order_relaxed);
  entry.arena.store(range.arena, std::memory_order_relaxed);
  entry.access.store(range.access, std::memory_order_relaxed);
  entry.pd.store(range.pd, std::memory_order_relaxed);
  entry.qp_num.store(range.qp_num, std::memory_order_relaxed);
  const uint64_t generation = entry.state.load(std::memory_order_relaxed) >> 32;
  entry.state.store(generation << 32 | key, std::memory_order_release);
}

void KeyTable::Revoke(uint32_t key) {
  KeyEntry& entry = entries_[key >> 8];
  const uint64_t generation =
      (entry.state.load(std::memory_order_relaxed) >> 32) + 1;
  entry.state.store(generation << 32, std::memory_order_relaxed);
  // Pairs with the fence of a requester between PublishWriting and Find: either
  // it finds the key gone, or we see that it writes. It also keeps the owner's
  // later stores to the memory behind the revocation, which StillValid needs.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace rdma::soft
