#include "rpc/routing/balancer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rpc/routing/deferred.h"

namespace rpc::routing {
namespace {

constexpr absl::Duration kFirstResolvePause = absl::Seconds(1);
constexpr absl::Duration kLongestResolvePause = absl::Seconds(30);

}  // namespace

// ---- One address.

Balancer::Subchannel::Subchannel(Balancer* balancer, std::string address,
                                 std::unique_ptr<ClientTransport> transport)
    : balancer_(balancer),
      address_(std::move(address)),
      transport_(balancer->Share(std::move(transport))) {}

Balancer::Subchannel::~Subchannel() { transport_->RemoveStateListener(this); }

void Balancer::Subchannel::OnState(ConnectivityState state,
                                   const absl::Status& why) {
  const bool failed = state == ConnectivityState::kTransientFailure;
  if (failed || state == ConnectivityState::kIdle) {
    absl::MutexLock lock(&mutex_);
    lost_ = true;
    failed_ = failed_ || failed;
    if (failed) error_ = why;
  }
  balancer_->UpdateSoon();
}

BalancingPolicy::Address Balancer::Subchannel::Look(absl::Status* error,
                                                    bool* was_lost) {
  // Not under the lock, which OnState takes.
  const ConnectivityState state = transport_->GetState(false);
  absl::MutexLock lock(&mutex_);
  if (failed_) *error = error_;
  *was_lost |= std::exchange(lost_, false);
  return {state, std::exchange(failed_, false)};
}

// ---- All of them.

Balancer::Balancer(Transports transports,
                   std::unique_ptr<BalancingPolicy> policy)
    : policy_(std::move(policy)) {
  absl::MutexLock lock(&mutex_);
  for (std::unique_ptr<ClientTransport>& transport : transports) {
    subchannels_.push_back(NewSubchannel("", std::move(transport)));
  }
}

Balancer::Balancer(Names names, std::unique_ptr<BalancingPolicy> policy)
    : policy_(std::move(policy)),
      names_(std::move(names)),
      resolve_pause_(kFirstResolvePause) {}

Balancer::~Balancer() = default;

void Balancer::Start(std::weak_ptr<void> owner) {
  owner_ = std::move(owner);
  absl::MutexLock lock(&mutex_);
  for (const std::unique_ptr<Subchannel>& subchannel : subchannels_) {
    subchannel->Start();
  }
}

// A call may be the last to have it, and let go of it in a callback.
std::shared_ptr<ClientTransport> Balancer::Share(
    std::unique_ptr<ClientTransport> transport) {
  return {transport.release(), [this](ClientTransport* last) {
            std::shared_ptr<void> owner = owner_.lock();
            if (owner == nullptr) {  // all of it ends, where it may
              delete last;
              return;
            }
            absl::AnyInvocable<void()> end = [owner = std::move(owner), last] {
              delete last;
            };
            // Better a leak than a transport that ends under itself.
            (void)RunSoon(end);
          }};
}

std::unique_ptr<Balancer::Subchannel> Balancer::NewSubchannel(
    std::string address, std::unique_ptr<ClientTransport> transport) {
  auto subchannel = std::make_unique<Subchannel>(this, std::move(address),
                                                 std::move(transport));
  for (const std::string& path : methods_) {
    subchannel->methods().push_back(
        subchannel->transport()->RegisterMethod(path));
  }
  return subchannel;
}

Balancer::SharedTransports Balancer::TransportsOf(
    const std::vector<size_t>& indices) {
  SharedTransports transports;
  for (const size_t index : indices) {
    transports.push_back(subchannels_[index]->transport());
  }
  return transports;
}

uint32_t Balancer::RegisterMethod(std::string_view path) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find(methods_.begin(), methods_.end(), path);
  if (found != methods_.end()) {
    return static_cast<uint32_t>(found - methods_.begin());
  }
  methods_.emplace_back(path);
  for (const std::unique_ptr<Subchannel>& subchannel : subchannels_) {
    subchannel->methods().push_back(
        subchannel->transport()->RegisterMethod(path));
  }
  return static_cast<uint32_t>(methods_.size() - 1);
}

Balancer::Work Balancer::Look(bool wanted) {
  if (subchannels_.empty()) {
    wanted_ = wanted_ || wanted;
    if (!wanted || resolves_) return {};
    if (state_ == ConnectivityState::kIdle) {
      state_ = ConnectivityState::kConnecting;
    }
    ResolveAgain();
    return {};
  }
  wanted = std::exchange(wanted_, false) || wanted;
  std::vector<BalancingPolicy::Address> addresses;
  bool was_lost = false;
  for (const std::unique_ptr<Subchannel>& subchannel : subchannels_) {
    addresses.push_back(subchannel->Look(&last_error_, &was_lost));
  }
  if (was_lost) ResolveAgain();
  const BalancingPolicy::Decision decision = policy_->Look(addresses, wanted);
  state_ = decision.state;
  return {TransportsOf(decision.connect), TransportsOf(decision.forget)};
}

// A transport that does not tell has come into another state at once.
void Balancer::Do(const Work& work) {
  for (const std::shared_ptr<ClientTransport>& transport : work.forget) {
    transport->ResetBackoff();
  }
  bool changed = false;
  for (const std::shared_ptr<ClientTransport>& transport : work.connect) {
    transport->GetState(/*try_to_connect=*/true);
    changed |= transport->GetState(false) != ConnectivityState::kIdle;
  }
  if (changed) UpdateSoon();
}

// ---- Names.

void Balancer::ResolveAgain() {
  if (names_.resolve == nullptr || std::exchange(resolves_, true)) return;
  const absl::Time earliest = resolved_at_ + names_.min_time_between;
  earliest <= absl::Now() ? ResolveSoon() : ResolveAt(earliest);
}

void Balancer::ResolveSoon() {
  if (owner_.expired()) return;
  absl::AnyInvocable<void()> resolve = [this, owner = owner_] {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive != nullptr) Resolve();
  };
  if (!RunSoon(resolve)) resolves_ = false;
}

void Balancer::ResolveAt(absl::Time time) {
  Timer::Start(time, [this, owner = owner_] {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive == nullptr) return;
    Resolve();
  });
}

void Balancer::Resolve() {
  absl::StatusOr<std::vector<std::string>> addresses = names_.resolve();
  absl::Status status = addresses.status();
  Transports transports;
  if (status.ok()) status = MakeTransports(*addresses, transports);
  Subchannels gone;  // without the lock
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      gone = OnResolved(*addresses, std::move(transports));
    } else {
      OnNotResolved(status);
    }
  }
  Update();
}

absl::Status Balancer::MakeTransports(const std::vector<std::string>& addresses,
                                      Transports& transports) {
  transports.resize(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    {
      absl::MutexLock lock(&mutex_);
      const auto has_address = [&](const auto& subchannel) {
        return subchannel->address() == addresses[i];
      };
      if (std::any_of(subchannels_.begin(), subchannels_.end(), has_address)) {
        continue;
      }
    }
    absl::StatusOr<std::unique_ptr<ClientTransport>> transport =
        names_.connect_to(addresses[i]);
    if (!transport.ok()) return transport.status();
    transports[i] = *std::move(transport);
  }
  return absl::OkStatus();
}

Balancer::Subchannels Balancer::OnResolved(
    const std::vector<std::string>& addresses, Transports transports) {
  Subchannels before = std::exchange(subchannels_, {});
  std::vector<std::optional<size_t>> old_places;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto same = [&](const auto& subchannel) {
      return subchannel != nullptr && subchannel->address() == addresses[i];
    };
    const auto found = std::find_if(before.begin(), before.end(), same);
    if (found != before.end()) {
      old_places.emplace_back(found - before.begin());
      subchannels_.push_back(std::move(*found));
    } else if (transports[i] != nullptr) {  // else it is there twice
      old_places.emplace_back(std::nullopt);
      subchannels_.push_back(
          NewSubchannel(addresses[i], std::move(transports[i])));
      subchannels_.back()->Start();
    }
  }
  policy_->OnNewAddresses(old_places);
  resolves_ = false;
  resolved_at_ = absl::Now();
  resolve_pause_ = kFirstResolvePause;
  return before;
}

// Addresses that were found before stay.
void Balancer::OnNotResolved(const absl::Status& why) {
  if (subchannels_.empty()) {
    state_ = ConnectivityState::kTransientFailure;
    last_error_ = why;
  }
  ResolveAt(absl::Now() + resolve_pause_);
  resolve_pause_ = std::min(resolve_pause_ * 2, kLongestResolvePause);
}

// ---- Calls.

Balancer::Pick Balancer::TryToPick(const Waiter& waiter) {
  if (state_ == ConnectivityState::kReady) {
    const std::optional<size_t> index =
        policy_->Pick([this](size_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return subchannels_[i]->transport()->GetState(false) ==
                 ConnectivityState::kReady;
        });
    if (!index.has_value()) return {};
    Subchannel& subchannel = *subchannels_[*index];
    return {subchannel.transport(), subchannel.methods()[waiter.method()], {}};
  }
  if (state_ != ConnectivityState::kTransientFailure ||
      waiter.waits_for_ready()) {
    return {};
  }
  return {
      nullptr, 0,
      absl::UnavailableError(absl::StrCat(std::string(policy_->failure_text()),
                                          std::string(last_error_.message())))};
}

Balancer::Pick Balancer::PickOrWait(const std::shared_ptr<Waiter>& waiter) {
  Work work;
  Pick pick;
  {
    absl::MutexLock lock(&mutex_);
    pick = TryToPick(*waiter);
    if (pick.transport == nullptr) {
      work = Look(/*wanted=*/true);
      pick = TryToPick(*waiter);
    }
    if (pick.transport == nullptr && pick.failure.ok()) {
      waiting_.push_back(waiter);
    }
  }
  Do(work);
  return pick;
}

bool Balancer::Forget(const Waiter* waiter) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(
      waiting_.begin(), waiting_.end(),
      [waiter](const auto& other) { return other.get() == waiter; });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  return true;
}

std::vector<Balancer::Told> Balancer::TakePicked() {
  std::vector<Told> told;
  std::vector<std::shared_ptr<Waiter>> left;
  for (std::shared_ptr<Waiter>& waiter : waiting_) {
    Pick pick = TryToPick(*waiter);
    if (pick.transport == nullptr && pick.failure.ok()) {
      left.push_back(std::move(waiter));
    } else {
      told.push_back({std::move(waiter), std::move(pick)});
    }
  }
  waiting_ = std::move(left);
  return told;
}

// ---- States.

// Within OnState, and so with locks of the transport's held.
void Balancer::UpdateSoon() {
  if (update_is_due_.exchange(true)) return;
  if (owner_.expired()) return;  // all of it ends
  // Without a reference: who waits for the end may have the thread it needs.
  absl::AnyInvocable<void()> update = [this, owner = owner_] {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive != nullptr) Update();
  };
  // Without a thread, the next change of state is another chance.
  if (!RunSoon(update)) update_is_due_.store(false);
}

void Balancer::Update() {
  update_is_due_.store(false);
  Work work;
  std::vector<Told> told;
  {
    absl::MutexLock lock(&mutex_);
    work = Look(/*wanted=*/!waiting_.empty());
    told = TakePicked();
  }
  Do(work);
  for (const Told& one : told) one.waiter->OnPick(one.pick);
}

void Balancer::ResetBackoff() {
  Work work;
  {
    absl::MutexLock lock(&mutex_);
    for (const std::unique_ptr<Subchannel>& subchannel : subchannels_) {
      work.forget.push_back(subchannel->transport());
    }
  }
  Do(work);
}

ConnectivityState Balancer::GetState(bool try_to_connect) {
  Work work;
  ConnectivityState state;
  {
    absl::MutexLock lock(&mutex_);
    state = state_;
    if (try_to_connect && state == ConnectivityState::kIdle) {
      work = Look(/*wanted=*/true);
    }
  }
  Do(work);
  return state;
}

bool Balancer::WaitForStateChange(ConnectivityState last_observed,
                                  absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  const auto changed = [this, last_observed]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                           mutex_) { return state_ != last_observed; };
  return mutex_.AwaitWithDeadline(absl::Condition(&changed), deadline);
}

}  // namespace rpc::routing
