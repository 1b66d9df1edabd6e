#include "examples/kv/storage_shard.h"

#include <utility>

namespace kv {

const StorageNode* StorageShard::Find(std::string_view key) const {
  const auto it = nodes_.find(key);
  return it == nodes_.end() ? nullptr : it->second.get();
}

uint64_t StorageShard::Set(std::string_view key, rpc::BufferChain* value,
                           uint64_t memory_bytes) {
  const auto it = nodes_.find(key);
  StorageNode* node;
  if (it != nodes_.end()) {
    node = it->second.get();
  } else {
    auto owned = std::make_unique<StorageNode>();
    owned->key = key;
    node = owned.get();
    index_.emplace(node->key, node);
    nodes_.emplace(node->key, std::move(owned));
  }
  value_bytes_ += value->size() - node->value.size();
  std::swap(node->value, *value);
  node->memory_bytes = memory_bytes;
  node->version = ++last_version_;
  return node->version;
}

std::unique_ptr<StorageNode> StorageShard::Remove(std::string_view key) {
  const auto it = nodes_.find(key);
  if (it == nodes_.end()) return nullptr;
  std::unique_ptr<StorageNode> node = std::move(it->second);
  nodes_.erase(it);
  index_.erase(node->key);
  value_bytes_ -= node->value.size();
  return node;
}

bool StorageShard::Collect(std::string_view prefix, const ListStart& start,
                           size_t count, std::vector<ListEntry>* out) const {
  absl::ReaderMutexLock lock(&mutex);
  auto it = start.after ? index_.upper_bound(start.key)
                        : index_.lower_bound(start.key);
  for (; it != index_.end() && it->first.starts_with(prefix); ++it) {
    if (count-- == 0) return true;
    const StorageNode& node = *it->second;
    out->push_back({node.key, node.value.size(), node.version});
  }
  return false;
}

}  // namespace kv
