#include "rdma_transport/call.h"

#include <utility>

namespace rdma {
namespace {

// In Call::alias only, where a call's end looks anyway: it is for guests.
constexpr uint64_t kGuestsBit = uint64_t{1} << 62;

}  // namespace

void Call::HoldBack(rpc::OutgoingFrame& frame) {
  if (held_back == nullptr) {
    held_back = std::make_unique<std::deque<OwnedFrame>>();
  }
  sent_end = frame.end;
  held_back->emplace_back(std::move(frame));
}

inline void Call::Reset() {
  Unlink();
  static constexpr CallState kFresh;
  static_cast<CallState&>(*this) = kFresh;
  inbox.clear();
  held_back.reset();
  if (!outcome.status.ok()) outcome.status = absl::OkStatus();
  outcome.may_have_run = true;
  cut_off.store(false, std::memory_order_relaxed);
}

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
  if (entry.call == nullptr) entry.call = std::make_unique<Call>();
  entry.live = true;
  entry.call->handle = {uint64_t{entry.generation} << 32 |
                        number_ << kIndexBits | index};
  ++live_;
  return entry.call.get();
}

void CallTable::SetForGuests(Call* call) {
  call->alias.value |= kGuestsBit;
  live_for_guests_.store(live_for_guests() + 1, std::memory_order_relaxed);
}

void CallTable::Forget(rpc::CallHandle alias) {
  if ((alias.value & kGuestsBit) != 0) {
    live_for_guests_.store(live_for_guests() - 1, std::memory_order_relaxed);
  }
  if ((alias.value & kAliasBit) != 0) aliases_.erase(alias.value & ~kGuestsBit);
}

rpc::CallHandle CallTable::HandleOf(rpc::CallHandle alias) const {
  const auto found = aliases_.find(alias.value);
  return found == aliases_.end() ? rpc::CallHandle() : found->second;
}

void CallTable::Destroy(Call* call) {
  const auto index = static_cast<uint32_t>(call->handle.value) & kIndexMask;
  Entry& entry = entries_[index];
  if (call->alias) Forget(call->alias);
  entry.live = false;
  entry.generation = (entry.generation + 1) & kGenerationMask;
  if (entry.generation == 0) entry.generation = 1;
  --live_;
  call->Reset();
  // The last one to come is the first one to go: its memory is still cached.
  free_.push_back(index);
}

}  // namespace rdma
