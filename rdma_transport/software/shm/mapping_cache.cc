#include "rdma_transport/software/shm/mapping_cache.h"

namespace rdma::soft {

absl::StatusOr<std::shared_ptr<const PeerMapping>> MappingCache::Map(
    int fd, const PeerSegmentRules& rules) {
  const absl::StatusOr<FileIdentity> file = CheckPeerSegment(fd, rules);
  if (!file.ok()) return file.status();
  const Key key(file->device, file->inode, rules.writable);
  std::lock_guard lock(mutex_);
  if (const auto found = mappings_.find(key); found != mappings_.end()) {
    if (auto mapping = found->second.lock()) return mapping;
  }
  // An inode's number lives on while it is mapped, so that dead entries are the
  // only ones that can be mistaken, and those are not looked at. They go when
  // they may be half of all.
  if (mappings_.size() >= sweep_at_) {
    std::erase_if(mappings_,
                  [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * (mappings_.size() + 1);
  }
  absl::StatusOr<Mapping> mapped = MapPeerSegment(fd, rules);
  if (!mapped.ok()) return mapped.status();
  auto mapping = std::make_shared<const PeerMapping>(
      PeerMapping{*std::move(mapped), rules.writable});
  mappings_[key] = mapping;
  return mapping;
}

}  // namespace rdma::soft
