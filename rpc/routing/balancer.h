// A channel's transports, one for each address, and the policy that says which
// of them a call goes to.
//
// Where none is ready, a call's Waiter is kept until one is, or until all fail
// (which a call that waits for one to be ready sits out). States are looked at
// when a transport says that one changed (StateListener), on a thread of the
// executor for callbacks; so Waiters are told there, too.
//
// Thread rule: any thread. Under the lock, transports are only looked at
// (GetState(false)) and set up; they connect and get calls without it.
#ifndef VERBENA_RPC_ROUTING_BALANCER_H_
#define VERBENA_RPC_ROUTING_BALANCER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/routing/balancing_policy.h"
#include "rpc/transport.h"

namespace rpc::routing {

class Balancer final {
 public:
  // What became of a call that wants a transport. Neither: it waits.
  struct Pick {
    ClientTransport* transport = nullptr;
    uint32_t method = 0;  // that transport's number of it
    absl::Status failure;
  };

  // A call that waits for a transport.
  class Waiter {
   public:
    virtual uint32_t method() const = 0;
    virtual bool waits_for_ready() const = 0;
    // With a transport or a failure.
    virtual void OnPick(const Pick& pick) = 0;

   protected:
    ~Waiter() = default;
  };

  using Transports = std::vector<std::unique_ptr<ClientTransport>>;
  // Makes them; may block for as long as a resolver of names does.
  using Resolver = absl::AnyInvocable<absl::StatusOr<Transports>()>;

  // `transports`: one or more; `policy`: not null.
  Balancer(Transports transports, std::unique_ptr<BalancingPolicy> policy);
  // The same with transports to be had once a call wants one. A resolver that
  // fails is asked again after a pause; meanwhile the channel is failing.
  Balancer(Resolver resolver, std::unique_ptr<BalancingPolicy> policy);
  // REQUIRES: its transports have no calls.
  ~Balancer();
  Balancer(const Balancer&) = delete;
  Balancer& operator=(const Balancer&) = delete;

  // Before anything else: who keeps the balancer alive.
  void Start(std::weak_ptr<void> owner);

  uint32_t RegisterMethod(std::string_view path);

  // Where the result is neither, `waiter` hears of it by OnPick, once, unless
  // Forget says true.
  Pick PickOrWait(const std::shared_ptr<Waiter>& waiter);
  // True: it was waiting, and hears nothing.
  bool Forget(const Waiter* waiter);

  ConnectivityState GetState(bool try_to_connect);
  bool WaitForStateChange(ConnectivityState last_observed, absl::Time deadline);

 private:
  class Subchannel final : private StateListener {
   public:
    Subchannel(Balancer* balancer, std::unique_ptr<ClientTransport> transport);
    ~Subchannel();

    void Start() { transport_->AddStateListener(this); }
    ClientTransport* transport() const { return transport_.get(); }
    // Of the transport, by the balancer's; the balancer's lock guards it.
    std::vector<uint32_t>& methods() { return methods_; }
    // Since the last look. `error` is set where there was a failure.
    BalancingPolicy::Address Look(absl::Status* error);

   private:
    void OnState(ConnectivityState state, const absl::Status& why) override;

    Balancer* const balancer_;
    const std::unique_ptr<ClientTransport> transport_;
    std::vector<uint32_t> methods_;
    absl::Mutex mutex_;
    bool failed_ ABSL_GUARDED_BY(mutex_) = false;
    absl::Status error_ ABSL_GUARDED_BY(mutex_);
  };

  using ToConnect = std::vector<ClientTransport*>;
  struct Told {
    std::shared_ptr<Waiter> waiter;
    Pick pick;
  };

  // Asks the policy. The result is to connect, without the lock.
  ToConnect Look(bool wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has those connect that are idle.
  void Connect(const ToConnect& transports);
  void Listen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the resolver make transports, on a thread of the executor.
  void ResolveSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resolve();
  void OnResolved(Transports transports) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnNotResolved(const absl::Status& why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Pick TryToPick(const Waiter& waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Told> TakePicked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateSoon();
  void Update();

  std::weak_ptr<void> owner_;  // of what an update needs
  std::atomic<bool> update_is_due_{false};

  absl::Mutex mutex_;
  const std::unique_ptr<BalancingPolicy> policy_ ABSL_PT_GUARDED_BY(mutex_);
  Resolver resolver_;                              // by one thread at a time
  bool resolves_ ABSL_GUARDED_BY(mutex_) = false;  // or pauses after a failure
  absl::Duration resolve_pause_ ABSL_GUARDED_BY(mutex_);
  // Empty until they are resolved; then always the same.
  std::vector<std::unique_ptr<Subchannel>> subchannels_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> methods_ ABSL_GUARDED_BY(mutex_);  // paths
  ConnectivityState state_ ABSL_GUARDED_BY(mutex_) = ConnectivityState::kIdle;
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Waiter>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_BALANCER_H_
