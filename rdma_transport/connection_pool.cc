#include "rdma_transport/connection_pool.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/client_poller.h"
#include "rdma_transport/device_choice.h"

namespace rdma {
namespace {

// Held by the channels; the endpoint behind it may live a little longer, in
// tasks that are still to run.
struct Lease {
  explicit Lease(std::shared_ptr<Endpoint> endpoint)
      : endpoint(std::move(endpoint)) {}
  ~Lease() { endpoint->Shutdown(); }

  const std::shared_ptr<Endpoint> endpoint;
};

struct Registry {
  absl::Mutex mutex;
  std::map<std::string, std::weak_ptr<Lease>> leases ABSL_GUARDED_BY(mutex);
};

Registry& GetRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

// Every option that makes a difference to an endpoint.
std::string KeyOf(const HostPort& address,
                  const rpc::TransportOptions& options) {
  return absl::StrCat(
      address.host, "|", address.port, "|", options.device, "|",
      options.max_receive_message_bytes, "|",
      options.max_receive_attachment_bytes, "|", options.memory_budget_bytes,
      "|", options.receive_budget_bytes, "|", options.eager_limit_bytes, "|",
      absl::ToInt64Nanoseconds(options.spin), "|", options.pollers, "|",
      absl::FormatDuration(options.keepalive_time), "|",
      absl::FormatDuration(options.keepalive_timeout), "|",
      options.keepalive_without_calls, "|",
      absl::FormatDuration(options.offer_grace), "|",
      absl::FormatDuration(options.connect_timeout), "|",
      absl::FormatDuration(options.initial_backoff), "|",
      absl::FormatDuration(options.min_backoff), "|",
      absl::FormatDuration(options.max_backoff), "|",
      absl::FormatDuration(options.idle_timeout), "|",
      options.allow_other_users, "|", options.fabric.set_up_by_tcp, "|",
      options.fabric.timeout, "|", options.fabric.retry_count, "|",
      options.fabric.rnr_retry_count, "|", options.fabric.min_rnr_timer, "|",
      options.fabric.traffic_class, "|", options.fabric.mtu_bytes);
}

absl::StatusOr<std::shared_ptr<Endpoint>> Create(
    const HostPort& address, const rpc::TransportOptions& options) {
  absl::StatusOr<std::shared_ptr<ClientPoller>> poller =
      ClientPoller::Get(options);
  if (!poller.ok()) return poller.status();
  (*poller)->poller->StartKeepers();
  return std::make_shared<Endpoint>(*std::move(poller), address, options);
}

// As long as its channels.
std::shared_ptr<Endpoint> ForChannel(std::shared_ptr<Lease> lease) {
  Endpoint* const endpoint = lease->endpoint.get();
  return std::shared_ptr<Endpoint>(std::move(lease), endpoint);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Endpoint>> ConnectionPool::Get(
    const HostPort& address, const rpc::TransportOptions& asked_for) {
  rpc::TransportOptions options = asked_for;
  // Before the lock: it may ask a resolver.
  if (options.device == kAutoDevice) {
    options.device = DeviceToReach(address, options.fabric);
  }
  if (!options.share_connection) {
    absl::StatusOr<std::shared_ptr<Endpoint>> endpoint =
        Create(address, options);
    if (!endpoint.ok()) return endpoint.status();
    return ForChannel(std::make_shared<Lease>(*std::move(endpoint)));
  }
  Registry& registry = GetRegistry();
  absl::MutexLock lock(&registry.mutex);
  const std::string key = KeyOf(address, options);
  const auto found = registry.leases.find(key);
  if (found != registry.leases.end()) {
    if (std::shared_ptr<Lease> lease = found->second.lock()) {
      return ForChannel(std::move(lease));
    }
  }
  absl::StatusOr<std::shared_ptr<Endpoint>> endpoint = Create(address, options);
  if (!endpoint.ok()) return endpoint.status();
  // Where addresses come and go, those that went are forgotten.
  std::erase_if(registry.leases,
                [](const auto& lease) { return lease.second.expired(); });
  const auto lease = std::make_shared<Lease>(*std::move(endpoint));
  registry.leases[key] = lease;
  return ForChannel(lease);
}

}  // namespace rdma
