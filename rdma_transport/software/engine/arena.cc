#include "rdma_transport/software/engine/arena.h"

#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/software/engine/link.h"

namespace rdma::soft {

absl::StatusOr<std::byte*> ArenaTable::Allocate(size_t bytes, MemoryUse use) {
  // Without the lock: making pages present takes its time.
  absl::StatusOr<Segment> segment =
      Segment::Create("verbena-arena", bytes,
                      use == MemoryUse::kLocal ? Sharing::kReadOnlyToPeers
                                               : Sharing::kWritableByPeers,
                      Prefault::kYes);
  if (!segment.ok()) return segment.status();
  if (use == MemoryUse::kJointReads && !segment->OpenReadOnly()) {
    return absl::UnavailableError(
        "shared memory cannot be opened for reading by /proc/self/fd");
  }
  std::lock_guard lock(mutex_);
  if (by_id_.size() == kMaxArenas) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", kMaxArenas,
        " pieces of device memory, and peers map no more: use fewer, larger "
        "ones"));
  }
  const uint32_t id = next_id_++;
  auto arena = std::make_shared<Arena>(id, use, *std::move(segment));
  std::byte* const base = arena->base();
  by_id_.emplace(id, arena);
  by_base_.emplace(base, std::move(arena));
  return base;
}

std::shared_ptr<Arena> ArenaTable::Remove(void* memory) {
  std::lock_guard lock(mutex_);
  const auto found = by_base_.find(static_cast<std::byte*>(memory));
  if (found == by_base_.end()) return nullptr;
  std::shared_ptr<Arena> arena = std::move(found->second);
  by_base_.erase(found);
  by_id_.erase(arena->id());
  return arena;
}

std::shared_ptr<Arena> ArenaTable::Find(const void* addr, size_t length) const {
  const auto* const start = static_cast<const std::byte*>(addr);
  std::lock_guard lock(mutex_);
  auto after = by_base_.upper_bound(start);
  if (after == by_base_.begin()) return nullptr;
  const std::shared_ptr<Arena>& arena = std::prev(after)->second;
  const size_t offset = start - arena->base();
  if (offset > arena->bytes() || length > arena->bytes() - offset) {
    return nullptr;
  }
  return arena;
}

std::shared_ptr<Arena> ArenaTable::FindById(uint32_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Arena>> ArenaTable::OpenToPeers() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Arena>> open;
  for (const auto& [base, arena] : by_base_) {
    if (arena->open_to_peers()) open.push_back(arena);
  }
  return open;
}

}  // namespace rdma::soft
