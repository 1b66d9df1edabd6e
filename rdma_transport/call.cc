#include "rdma_transport/call.h"

#include <utility>

namespace rdma {
namespace {

constexpr size_t kMaxSpareCalls = 1024;

// Aliases have the top bit, generations do not.
constexpr uint64_t kAliasBit = uint64_t{1} << 63;
constexpr uint32_t kGenerationMask = 0x7fffffff;

// A handle is, from its low end, the entry's index, its table's number, and the
// entry's generation.
constexpr int kIndexBits = 28;
constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
static_assert(CallTable::kMaxPollers == 1u << (32 - kIndexBits));

}  // namespace

rpc::CallHandle CallTable::NewAlias() {
  static std::atomic<uint64_t> next{1};
  return {kAliasBit | next.fetch_add(1, std::memory_order_relaxed)};
}

uint32_t CallTable::PollerNumberOf(rpc::CallHandle handle) {
  return static_cast<uint32_t>(handle.value) >> kIndexBits;
}

Call* CallTable::Create(rpc::CallHandle alias) {
  Call* const call = Create();
  call->alias = alias;
  aliases_[alias.value] = call->handle;
  return call;
}

Call* CallTable::Create() {
  uint32_t index;
  if (free_.empty()) {
    index = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Entry& entry = entries_[index];
  if (spare_.empty()) {
    entry.call = std::make_unique<Call>();
  } else {
    entry.call = std::move(spare_.back());
    spare_.pop_back();
  }
  entry.call->handle = {uint64_t{entry.generation} << 32 |
                        number_ << kIndexBits | index};
  ++live_;
  return entry.call.get();
}

Call* CallTable::Find(rpc::CallHandle handle) {
  if ((handle.value & kAliasBit) != 0) {
    const auto found = aliases_.find(handle.value);
    if (found == aliases_.end()) return nullptr;
    handle = found->second;
  }
  const auto index = static_cast<uint32_t>(handle.value) & kIndexMask;
  const auto generation = static_cast<uint32_t>(handle.value >> 32);
  if (index >= entries_.size()) return nullptr;
  Entry& entry = entries_[index];
  return entry.generation == generation ? entry.call.get() : nullptr;
}

void CallTable::Destroy(Call* call) {
  const auto index = static_cast<uint32_t>(call->handle.value) & kIndexMask;
  Entry& entry = entries_[index];
  std::unique_ptr<Call> ended = std::move(entry.call);
  if (ended->alias) aliases_.erase(ended->alias.value);
  entry.generation = (entry.generation + 1) & kGenerationMask;
  if (entry.generation == 0) entry.generation = 1;
  free_.push_back(index);
  --live_;
  if (spare_.size() < kMaxSpareCalls) {
    // Reconstructed in place: the memory is what is worth keeping.
    Call* const memory = ended.release();
    memory->~Call();
    spare_.emplace_back(new (memory) Call);
  }
}

}  // namespace rdma
