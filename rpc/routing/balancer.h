// A channel's transports, one for each address, and the policy that says which
// of them a call goes to.
//
// Where none is ready, a call's Waiter is kept until one is, or until all fail
// (which a call that waits for one to be ready sits out). States are looked at
// when a transport says that one changed (StateListener), on a thread of the
// executor for callbacks; so Waiters are told there, too.
//
// Names are resolved with the first call. Where the policy is one for which
// that matters, they are resolved again when a connection failed or was lost,
// though not more often than is asked for; transports to addresses that stayed
// are kept. One whose address is gone gets no new calls, and ends with its last
// one.
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
    std::shared_ptr<ClientTransport> transport;
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
  // Where addresses come from: one or more, while the balancer lives.
  struct Names {
    // May block for as long as a resolver of names does. Where it fails, it is
    // asked again after a pause; meanwhile a channel that has no addresses yet
    // is failing.
    absl::AnyInvocable<absl::StatusOr<std::vector<std::string>>()> resolve;
    absl::AnyInvocable<absl::StatusOr<std::unique_ptr<ClientTransport>>(
        const std::string& address)>
        connect_to;
    absl::Duration min_time_between = absl::Seconds(30);
  };

  // `transports`: one or more; `policy`: not null.
  Balancer(Transports transports, std::unique_ptr<BalancingPolicy> policy);
  // The same with transports to be had once a call wants one.
  Balancer(Names names, std::unique_ptr<BalancingPolicy> policy);
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
  // Of all its transports; see ClientTransport.
  void ResetBackoff();

 private:
  class Subchannel final : private StateListener {
   public:
    Subchannel(Balancer* balancer, std::string address,
               std::unique_ptr<ClientTransport> transport);
    ~Subchannel();

    void Start() { transport_->AddStateListener(this); }
    const std::string& address() const { return address_; }
    const std::shared_ptr<ClientTransport>& transport() const {
      return transport_;
    }
    // Of the transport, by the balancer's; the balancer's lock guards it.
    std::vector<uint32_t>& methods() { return methods_; }
    // Since the last look. `error` is set where there was a failure, and
    // `*was_lost` where a connection failed or went.
    BalancingPolicy::Address Look(absl::Status* error, bool* was_lost);

   private:
    void OnState(ConnectivityState state, const absl::Status& why) override;

    Balancer* const balancer_;
    const std::string address_;  // where names stand for it
    const std::shared_ptr<ClientTransport> transport_;
    std::vector<uint32_t> methods_;
    absl::Mutex mutex_;
    bool lost_ ABSL_GUARDED_BY(mutex_) = false;
    bool failed_ ABSL_GUARDED_BY(mutex_) = false;
    absl::Status error_ ABSL_GUARDED_BY(mutex_);
  };

  using SharedTransports = std::vector<std::shared_ptr<ClientTransport>>;
  // What is to be done without the lock.
  struct Work {
    SharedTransports connect;
    SharedTransports forget;  // what pauses they have come to
  };
  using Subchannels = std::vector<std::unique_ptr<Subchannel>>;
  struct Told {
    std::shared_ptr<Waiter> waiter;
    Pick pick;
  };

  // Asks the policy.
  Work Look(bool wanted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(const Work& work);
  SharedTransports TransportsOf(const std::vector<size_t>& indices)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does not end within its own callbacks.
  std::shared_ptr<ClientTransport> Share(
      std::unique_ptr<ClientTransport> transport);
  std::unique_ptr<Subchannel> NewSubchannel(
      std::string address, std::unique_ptr<ClientTransport> transport)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has names resolved: as soon as may be, and not on this thread.
  void ResolveAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResolveSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResolveAt(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resolve();
  // Those that there is none for yet are made.
  absl::Status MakeTransports(const std::vector<std::string>& addresses,
                              Transports& transports);
  // The result is what there is no address for any more.
  Subchannels OnResolved(const std::vector<std::string>& addresses,
                         Transports transports)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  Names names_;                                    // by one thread at a time
  bool resolves_ ABSL_GUARDED_BY(mutex_) = false;  // or will, when it may
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;    // before they were resolved
  absl::Duration resolve_pause_ ABSL_GUARDED_BY(mutex_);
  absl::Time resolved_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Empty until names are resolved.
  Subchannels subchannels_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> methods_ ABSL_GUARDED_BY(mutex_);  // paths
  ConnectivityState state_ ABSL_GUARDED_BY(mutex_) = ConnectivityState::kIdle;
  absl::Status last_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Waiter>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_BALANCER_H_
