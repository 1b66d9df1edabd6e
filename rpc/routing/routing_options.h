// How a channel spreads and repeats its calls: what its arguments say.
//
// Thread rule: a value type.
#ifndef VERBENA_RPC_ROUTING_ROUTING_OPTIONS_H_
#define VERBENA_RPC_ROUTING_ROUTING_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace rpc {

struct RoutingOptions {
  // "pick_first" or "round_robin"; empty: the service config's, or pick_first.
  std::string policy;
  // JSON; empty: none. See service_config.h.
  std::string service_config;

  // Names are not resolved again before.
  absl::Duration min_time_between_resolutions = absl::Seconds(30);

  // Calls may be repeated: by the service config's policy, and where it is
  // certain that no handler saw them.
  bool retries = true;
  // The user said so: also where a channel has one address and no config.
  bool retries_asked_for = false;
  // A call that has sent more is not repeated; see docs/migration.md.
  uint64_t retry_buffer_bytes = 256 << 10;
};

}  // namespace rpc

#endif  // VERBENA_RPC_ROUTING_ROUTING_OPTIONS_H_
