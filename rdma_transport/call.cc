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

void Call::DropRest() {
  Unlink();
  inbox.clear();
  held_back.reset();
  outcome = rpc::CallOutcome();
  cut_off.store(false, std::memory_order_relaxed);
}

rpc::CallHandle CallTable::NewAlias() {
  static std::atomic<uint64_t> next{1};
  return {kAliasBit | next.fetch_add(1, std::memory_order_relaxed)};
}

Call* CallTable::Create(rpc::CallHandle alias) {
  Call* const call = Create();
  call->alias = alias;
  aliases_[alias.value] = call->handle;
  return call;
}

void CallTable::AddFree() {
  auto call = std::make_unique<Call>();
  call->handle = {kOneGeneration | number_ << kIndexBits | calls_.size()};
  calls_.push_back(std::move(call));
  free_ = calls_.back().get();
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

}  // namespace rdma
