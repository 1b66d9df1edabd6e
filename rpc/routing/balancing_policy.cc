#include "rpc/routing/balancing_policy.h"

#include <algorithm>
#include <utility>

namespace rpc::routing {
namespace {

using Address = BalancingPolicy::Address;
using Decision = BalancingPolicy::Decision;
using State = ConnectivityState;

std::vector<size_t> IdleOnes(absl::Span<const Address> addresses) {
  std::vector<size_t> idle;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i].state == State::kIdle) idle.push_back(i);
  }
  return idle;
}

class PickFirst final : public BalancingPolicy {
 public:
  // Begins again, unless what it selected is still there.
  void OnNewAddresses(
      absl::Span<const std::optional<size_t>> old_places) override {
    const std::optional<size_t> selected = std::exchange(selected_, {});
    phase_ = Phase::kIdle;
    for (size_t i = 0; i < old_places.size(); ++i) {
      if (selected.has_value() && old_places[i] == selected) selected_ = i;
    }
  }

  Decision Look(absl::Span<const Address> addresses, bool wanted) override {
    if (selected_.has_value()) {
      if (addresses[*selected_].state == State::kReady) return {State::kReady};
      selected_.reset();
      phase_ = Phase::kIdle;
    }
    if (phase_ == Phase::kIdle) {
      if (!wanted) return {State::kIdle};
      phase_ = Phase::kTrying;
      StartTrying(0);
    }
    if (SelectReady(addresses)) return {State::kReady, {}, Others(addresses)};
    if (phase_ == Phase::kTrying) SkipFailed(addresses);
    if (phase_ == Phase::kFailing) {
      return {State::kTransientFailure, IdleOnes(addresses)};
    }
    return TryNext(addresses);
  }

  std::optional<size_t> Pick(absl::FunctionRef<bool(size_t)> ready) override {
    if (!selected_.has_value() || !ready(*selected_)) return std::nullopt;
    return selected_;
  }

  std::string_view failure_text() const override {
    return "failed to connect to all addresses; last error: ";
  }

 private:
  enum class Phase { kIdle, kTrying, kFailing };

  void StartTrying(size_t index) {
    trying_ = index;
    tried_ = false;
  }

  bool SelectReady(absl::Span<const Address> addresses) {
    const auto ready = std::find_if(
        addresses.begin(), addresses.end(),
        [](const Address& address) { return address.state == State::kReady; });
    if (ready == addresses.end()) return false;
    selected_ = static_cast<size_t>(ready - addresses.begin());
    return true;
  }

  std::vector<size_t> Others(absl::Span<const Address> addresses) const {
    std::vector<size_t> others;
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (i != *selected_) others.push_back(i);
    }
    return others;
  }

  // A failure from before its turn counts only while it lasts.
  void SkipFailed(absl::Span<const Address> addresses) {
    while (addresses[trying_].state == State::kTransientFailure ||
           (tried_ && addresses[trying_].failed)) {
      if (trying_ + 1 == addresses.size()) {
        phase_ = Phase::kFailing;
        return;
      }
      StartTrying(trying_ + 1);
    }
  }

  Decision TryNext(absl::Span<const Address> addresses) {
    tried_ = true;
    Decision decision = {State::kConnecting};
    if (addresses[trying_].state == State::kIdle) {
      decision.connect.push_back(trying_);
    }
    return decision;
  }

  Phase phase_ = Phase::kIdle;
  std::optional<size_t> selected_;
  size_t trying_ = 0;
  bool tried_ = false;  // it is connecting because of its turn
};

class RoundRobin final : public BalancingPolicy {
 public:
  explicit RoundRobin(uint32_t start) : next_(start) {}

  void OnNewAddresses(
      absl::Span<const std::optional<size_t>> old_places) override {
    const std::vector<State> before = std::exchange(states_, {});
    for (const std::optional<size_t>& place : old_places) {
      states_.push_back(place.has_value() && *place < before.size()
                            ? before[*place]
                            : State::kConnecting);
    }
  }

  Decision Look(absl::Span<const Address> addresses, bool wanted) override {
    started_ = started_ || wanted;
    if (!started_) return {State::kIdle};
    states_.resize(addresses.size(), State::kConnecting);
    for (size_t i = 0; i < addresses.size(); ++i) {
      Note(addresses[i], states_[i]);
    }
    return {Together(), IdleOnes(addresses)};
  }

  std::optional<size_t> Pick(absl::FunctionRef<bool(size_t)> ready) override {
    for (size_t i = 0; i < states_.size(); ++i) {
      const size_t index = next_++ % states_.size();
      if (ready(index)) return index;
    }
    return std::nullopt;
  }

  std::string_view failure_text() const override {
    return "connections to all backends failing; last error: ";
  }

 private:
  static void Note(const Address& address, State& state) {
    if (address.state == State::kReady) {
      state = State::kReady;
    } else if (address.failed || address.state == State::kTransientFailure) {
      state = State::kTransientFailure;
    } else if (state != State::kTransientFailure) {
      state = State::kConnecting;  // at once, where it is idle
    }
  }

  State Together() const {
    for (const State state : {State::kReady, State::kConnecting}) {
      if (std::find(states_.begin(), states_.end(), state) != states_.end()) {
        return state;
      }
    }
    return State::kTransientFailure;
  }

  bool started_ = false;
  std::vector<State> states_;
  uint32_t next_;
};

}  // namespace

std::unique_ptr<BalancingPolicy> MakePolicy(std::string_view name,
                                            uint32_t start) {
  if (name == "pick_first") return std::make_unique<PickFirst>();
  if (name == "round_robin") return std::make_unique<RoundRobin>(start);
  return nullptr;
}

}  // namespace rpc::routing
