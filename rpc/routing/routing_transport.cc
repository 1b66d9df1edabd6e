#include "rpc/routing/routing_transport.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "rpc/internal/method_name.h"
#include "rpc/routing/address_list.h"
#include "rpc/routing/balancer.h"
#include "rpc/routing/balancing_policy.h"
#include "rpc/routing/call_retries.h"
#include "rpc/routing/retry_throttle.h"
#include "rpc/routing/routed_call.h"
#include "rpc/routing/service_config.h"

namespace rpc::routing {
namespace {

using Transports = std::vector<std::unique_ptr<ClientTransport>>;

class RoutingTransport final : public ClientTransport {
 public:
  RoutingTransport(std::unique_ptr<CallEnvironment> environment,
                   std::unique_ptr<const ServiceConfig> config);
  ~RoutingTransport() override;

  const Limits& limits() const override { return limits_; }
  uint32_t RegisterMethod(std::string_view name) override;
  CallHandle StartCall(const CallOptions& options, OutgoingFrame&& frame,
                       CallSink* sink) override;
  bool Send(CallHandle handle, OutgoingFrame&& frame) override;
  void Release(CallHandle handle, uint64_t window_bytes, bool drained) override;
  void Cancel(CallHandle handle, absl::Status reason) override;
  void Wait(Event& event) override { home_->Wait(event); }
  void WaitAsGuest(Event& event) override { home_->WaitAsGuest(event); }
  void EndVisits() override { home_->EndVisits(); }
  const void* driven() const override { return home_->driven(); }
  void WakeWaiters() override { home_->WakeWaiters(); }
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return home_->AllocateBuffer(bytes);
  }
  ConnectivityState GetState(bool try_to_connect) override {
    return balancer_->GetState(try_to_connect);
  }
  bool WaitForStateChange(ConnectivityState last_observed,
                          absl::Time deadline) override {
    return balancer_->WaitForStateChange(last_observed, deadline);
  }
  void ResetBackoff() override { balancer_->ResetBackoff(); }
  std::string device() const override { return home_->device(); }

 private:
  const MethodConfig& ConfigOf(uint32_t method);

  const std::unique_ptr<const ServiceConfig> config_;
  ClientTransport* const home_;
  Balancer* const balancer_;
  Limits limits_;
  absl::Mutex mutex_;
  // Of the service config, by the method's number.
  std::vector<const MethodConfig*> methods_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<CallEnvironment> owned_environment_;
  absl::Notification is_unused_;  // the environment
  std::shared_ptr<CallEnvironment> environment_;
};

// The last reference may go within a callback of one of the transports, which
// end with it. So the destructor's thread ends them, which has to wait anyway:
// one of the executor's might not be free before others that wait like it.
RoutingTransport::RoutingTransport(std::unique_ptr<CallEnvironment> environment,
                                   std::unique_ptr<const ServiceConfig> config)
    : config_(std::move(config)),
      home_(environment->home),
      balancer_(environment->balancer.get()),
      limits_(home_->limits()),
      owned_environment_(std::move(environment)),
      environment_(owned_environment_.get(),
                   [this](CallEnvironment*) { is_unused_.Notify(); }) {
  limits_.max_header_bytes -= CallRetries::kHeaderBytes;
  balancer_->Start(environment_);
}

RoutingTransport::~RoutingTransport() {
  for (const auto& call : environment_->calls.All()) {
    call->Cancel(absl::CancelledError("the channel is shut down"));
  }
  environment_.reset();
  is_unused_.WaitForNotification();
}

uint32_t RoutingTransport::RegisterMethod(std::string_view name) {
  const uint32_t method = balancer_->RegisterMethod(name);
  absl::MutexLock lock(&mutex_);
  if (methods_.size() <= method) methods_.resize(method + 1);
  methods_[method] = &config_->ForMethod(internal::PathOfMethodName(name));
  return method;
}

const MethodConfig& RoutingTransport::ConfigOf(uint32_t method) {
  absl::MutexLock lock(&mutex_);
  return *methods_[method];
}

// What the user says counts before what the config does, and the earlier
// deadline.
CallOptions Merge(const CallOptions& options, const MethodConfig& config) {
  CallOptions merged = options;
  if (config.timeout != absl::InfiniteDuration()) {
    merged.deadline = std::min(options.deadline, absl::Now() + config.timeout);
  }
  if (options.wait_for_ready == WaitForReady::kDefault &&
      config.wait_for_ready) {
    merged.wait_for_ready = WaitForReady::kYes;
  }
  return merged;
}

CallHandle RoutingTransport::StartCall(const CallOptions& options,
                                       OutgoingFrame&& frame, CallSink* sink) {
  const CallHandle handle = environment_->calls.NewHandle();
  const MethodConfig& config = ConfigOf(options.method);
  const auto call = std::make_shared<RoutedCall>(
      environment_, config, Merge(options, config), handle, sink);
  environment_->calls.Add(handle, call);
  call->Start(std::move(frame));
  return handle;
}

bool RoutingTransport::Send(CallHandle handle, OutgoingFrame&& frame) {
  const auto call = environment_->calls.Find(handle);
  return call != nullptr && call->Send(std::move(frame));
}

void RoutingTransport::Release(CallHandle handle, uint64_t window_bytes,
                               bool drained) {
  const auto call = environment_->calls.Find(handle);
  if (call != nullptr) call->Release(window_bytes, drained);
}

void RoutingTransport::Cancel(CallHandle handle, absl::Status reason) {
  const auto call = environment_->calls.Find(handle);
  if (call != nullptr) call->Cancel(std::move(reason));
}

absl::StatusOr<std::unique_ptr<ClientTransport>> CreateTransport(
    const std::string& address, const TransportOptions& options) {
  absl::StatusOr<TransportFactory*> factory =
      TransportFactory::ForAddress(address);
  if (!factory.ok()) return factory.status();
  return (*factory)->CreateClient(address, options);
}

absl::StatusOr<Transports> CreateTransports(
    const std::vector<std::string>& addresses,
    const TransportOptions& options) {
  Transports transports;
  for (const std::string& one : addresses) {
    absl::StatusOr<std::unique_ptr<ClientTransport>> transport =
        CreateTransport(one, options);
    if (!transport.ok()) return transport.status();
    transports.push_back(*std::move(transport));
  }
  return transports;
}

// All addresses of all names. Names that do not resolve are left out, unless
// none does.
absl::StatusOr<std::vector<std::string>> ResolveNames(
    const std::vector<std::string>& names, const NameResolver& resolve_name) {
  std::vector<std::string> addresses;
  absl::Status error;
  for (const std::string& name : names) {
    absl::StatusOr<std::vector<std::string>> resolved = resolve_name(name);
    if (!resolved.ok()) {
      error = resolved.status();
      continue;
    }
    addresses.insert(addresses.end(), resolved->begin(), resolved->end());
  }
  if (addresses.empty()) return error;
  return addresses;
}

// gRPC's order: the config's, the argument's, pick_first.
std::string PolicyName(const ServiceConfig& config,
                       const RoutingOptions& options) {
  if (!config.policy().empty()) return config.policy();
  return options.policy.empty() ? "pick_first" : options.policy;
}

absl::StatusOr<std::unique_ptr<BalancingPolicy>> CreatePolicy(
    const std::string& name) {
  absl::BitGen random;
  std::unique_ptr<BalancingPolicy> policy =
      MakePolicy(name, absl::Uniform<uint32_t>(random));
  if (policy != nullptr) return policy;
  return absl::InvalidArgumentError(
      absl::StrCat("grpc.lb_policy_name = '", name,
                   "' is neither pick_first nor round_robin"));
}

// pick_first needs no addresses of names: a transport tries all that its name
// has, in order.
absl::Status CreateBalancer(const std::vector<std::string>& addresses,
                            const TransportOptions& transport_options,
                            const RoutingOptions& options,
                            const std::string& policy_name,
                            const NameResolver& resolve_name,
                            CallEnvironment& environment) {
  absl::StatusOr<std::unique_ptr<BalancingPolicy>> policy =
      CreatePolicy(policy_name);
  if (!policy.ok()) return policy.status();
  absl::StatusOr<Transports> transports =
      CreateTransports(addresses, transport_options);
  if (!transports.ok()) return transports.status();
  environment.home = transports->front().get();
  if (policy_name == "pick_first" ||
      std::none_of(addresses.begin(), addresses.end(), IsByName)) {
    environment.balancer =
        std::make_unique<Balancer>(*std::move(transports), *std::move(policy));
    return absl::OkStatus();
  }
  environment.own_home = std::move(transports->front());
  Balancer::Names names = {
      .resolve =
          [addresses, resolve_name] {
            return ResolveNames(addresses, resolve_name);
          },
      .connect_to =
          [transport_options](const std::string& address) {
            return CreateTransport(address, transport_options);
          },
      .min_time_between = options.min_time_between_resolutions};
  environment.balancer =
      std::make_unique<Balancer>(std::move(names), *std::move(policy));
  return absl::OkStatus();
}

}  // namespace

std::string PolicyName(const RoutingOptions& options) {
  const auto config = ServiceConfig::Parse(options.service_config);
  return config.ok() ? PolicyName(**config, options) : "";
}

bool IsNeeded(std::string_view address, const RoutingOptions& options) {
  const bool has_policy =
      !options.policy.empty() && options.policy != "pick_first";
  return SplitAddresses(address).size() > 1 || options.retries_asked_for ||
         has_policy || !options.service_config.empty();
}

absl::StatusOr<std::unique_ptr<ClientTransport>> CreateRoutingTransport(
    std::string_view address, const TransportOptions& transport_options,
    const RoutingOptions& options, const NameResolver& resolve_name) {
  absl::StatusOr<std::unique_ptr<const ServiceConfig>> config =
      ServiceConfig::Parse(options.service_config);
  if (!config.ok()) return config.status();
  const std::vector<std::string> addresses = SplitAddresses(address);
  auto environment = std::make_unique<CallEnvironment>();
  absl::Status status =
      CreateBalancer(addresses, transport_options, options,
                     PolicyName(**config, options), resolve_name, *environment);
  if (!status.ok()) return status;
  environment->retries = options.retries;
  if ((*config)->throttling().has_value()) {
    environment->throttle = RetryThrottle::ForServer(
        absl::StrJoin(addresses, ","), *(*config)->throttling());
  }
  environment->retry_buffer_bytes = options.retry_buffer_bytes;
  return std::make_unique<RoutingTransport>(std::move(environment),
                                            *std::move(config));
}

}  // namespace rpc::routing
