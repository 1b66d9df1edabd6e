// Options of a channel or a server, by name.
//
//   rpc::ChannelArguments arguments;
//   arguments.SetMaxReceiveMessageSize(16 << 20);
//   arguments.SetString("verbena.device", "soft");
//   auto channel = rpc::CreateCustomChannel(
//       "rdma://localhost:50051", rpc::InsecureChannelCredentials(),
//       arguments);
//
// Known names (an unknown one has no effect, as in gRPC, and is logged at level
// info; a known one with a wrong type or value fails the channel or the server
// with INVALID_ARGUMENT):
//
// clang-format off
//   grpc.max_receive_message_length       bytes; -1 (the default): no limit
//   grpc.max_send_message_length          bytes; -1 (the default): no limit
//   grpc.max_metadata_size                bytes received in one direction; 8192
//   grpc.initial_reconnect_backoff_ms     1000
//   grpc.min_reconnect_backoff_ms         100
//   grpc.max_reconnect_backoff_ms         120000
//   grpc.client_idle_timeout_ms           1800000
//   grpc.keepalive_time_ms                10000; without calls see docs/flow_control.md
//   grpc.keepalive_timeout_ms             20000
//   grpc.keepalive_permit_without_calls   0; 1: as often without calls
//   grpc.max_connection_age_ms            2147483647: no limit; server only
//   grpc.max_connection_age_grace_ms      2147483647: no limit; server only
//   grpc.max_connection_idle_ms           2147483647: no limit; server only
//   grpc.so_reuseport                     1; 0: a port twice is an error; server only
//   grpc.use_local_subchannel_pool        0; 1: a connection of the channel's own
//   grpc.lb_policy_name                   "pick_first" (the default) or "round_robin"
//   grpc.service_config                   JSON; see rpc/routing/service_config.h
//   grpc.default_authority                what servers see as authority; the address
//   grpc.primary_user_agent               what servers see as "user-agent" begins so
//   grpc.secondary_user_agent             and ends so; without either they see none
//   grpc.dns_min_time_between_resolutions_ms  30000; for round_robin
//   grpc.enable_retries                   1: also with one address; 0: nowhere
//   grpc.per_rpc_retry_buffer_size        262144 bytes of a call that may be repeated
//   verbena.connect_timeout_ms            20000
//   verbena.device                        "auto", "soft", or a verbs device
//   verbena.memory_budget_bytes           0: half of the machine's memory
//   verbena.receive_budget_bytes          64 MiB
//   verbena.max_receive_attachment_bytes  -1 (the default): no limit
//   verbena.eager_limit_bytes             0: the transport's default
//   verbena.offer_grace_ms                10000; see docs/flow_control.md
//   verbena.spin_us                       -1: by itself; see docs/threading.md
//   verbena.pollers                       1; how many threads can drive at once
//   verbena.connection_setup              "rdma_cm", or "tcp"
//   verbena.ack_timeout                   14: 4.096 us * 2^14; 1 to 31
//   verbena.retry_count                   6; 0 to 6
//   verbena.rnr_retry_count               6; 0 to 7, which is for ever
//   verbena.min_rnr_timer                 12: 0.64 ms; 1 to 31, IBTA's encoding
//   verbena.traffic_class                 0: the route's
//   verbena.mtu                           0: the path's; 256, 512, ... 4096
//   verbena.allow_other_users             0; 1 on both sides
//   verbena.max_connections               4096; server only
//   verbena.handler_threads               256; server only
//   verbena.handler_queue                 65536 calls; server only
// clang-format on
//
// A message is at most 2 GiB - 1 whatever the limit: protobuf's format ends
// there. Attachments have no such bound.
//
// Thread rule: a value type; one thread at a time.
#ifndef VERBENA_RPC_CHANNEL_ARGUMENTS_H_
#define VERBENA_RPC_CHANNEL_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "rpc/compression.h"
#include "rpc/resource_quota.h"
#include "rpc/routing/routing_options.h"
#include "rpc/transport.h"

namespace rpc {

class ChannelArguments {
 public:
  // The last setting of a name counts.
  void SetInt(const std::string& key, int value) { SetInt64(key, value); }
  // For sizes beyond an int.
  void SetInt64(const std::string& key, int64_t value) { values_[key] = value; }
  void SetString(const std::string& key, const std::string& value) {
    values_[key] = value;
  }
  // Does not take it over, unless the name's description says so.
  void SetPointer(const std::string& key, void* value) { values_[key] = value; }

  // Bytes; -1: no limit.
  void SetMaxReceiveMessageSize(int size) {
    SetInt("grpc.max_receive_message_length", size);
  }
  void SetMaxSendMessageSize(int size) {
    SetInt("grpc.max_send_message_length", size);
  }

  // "pick_first" or "round_robin": which of several addresses calls go to.
  void SetLoadBalancingPolicyName(const std::string& lb_policy_name) {
    SetString("grpc.lb_policy_name", lb_policy_name);
  }
  // See rpc/routing/service_config.h.
  void SetServiceConfigJSON(const std::string& service_config_json) {
    SetString("grpc.service_config", service_config_json);
  }

  // See resource_quota.h.
  void SetResourceQuota(const ResourceQuota& quota);

  void Swap(ChannelArguments& other) { values_.swap(other.values_); }

  // Servers see "PREFIX verbena-c++" as "user-agent" among a call's metadata; a
  // further prefix goes in front of those before it. A channel says so once to
  // each connection: calls pay nothing for it.
  void SetUserAgentPrefix(const std::string& prefix);

  // Without effect: no load balancer is asked, and there is no TLS.
  void SetGrpclbFallbackTimeout(int timeout_ms) {
    SetInt("grpc.grpclb_fallback_timeout_ms", timeout_ms);
  }
  void SetSslTargetNameOverride(const std::string& name) {
    SetString("grpc.ssl_target_name_override", name);
  }

  // Without effect; see compression.h.
  void SetCompressionAlgorithm(CompressionAlgorithm algorithm) {
    SetInt("grpc.default_compression_algorithm", algorithm);
  }

 private:
  friend class Server;
  friend class ServerBuilder;
  friend absl::StatusOr<struct EndpointOptions> ParseArguments(
      const ChannelArguments& arguments);

  // With this where no default authority is set.
  ChannelArguments WithAuthority(const std::string& authority) const;

  // Takes the argument out, if there is one of this name that is a pointer.
  std::optional<void*> TakePointer(const std::string& key);

  std::map<std::string, std::variant<int64_t, std::string, void*>> values_;
};

// What the arguments say, typed.
struct EndpointOptions {
  TransportOptions transport;
  RoutingOptions routing;
  uint64_t max_send_message_bytes = std::numeric_limits<uint64_t>::max();
  size_t max_metadata_bytes = 0;
  std::string authority;  // empty: the channel's address
  std::string user_agent_prefix;
  std::string user_agent_suffix;
  size_t handler_threads = 0;
  size_t handler_queue = 0;
  bool reuse_port = true;  // a server's builder may be given one twice
};

// INVALID_ARGUMENT names the argument, its value and what it may be.
absl::StatusOr<EndpointOptions> ParseArguments(
    const ChannelArguments& arguments);

}  // namespace rpc

#endif  // VERBENA_RPC_CHANNEL_ARGUMENTS_H_
