// gRPC's service config: what a channel is to do for each method, as JSON
// (gRPC's document "Service Config in gRPC"; grpc/service_config/ of its
// protos has the fields).
//
//   {
//     "loadBalancingConfig": [{"round_robin": {}}],
//     "methodConfig": [{
//       "name": [{"service": "kv.KeyValue", "method": "Get"}],
//       "timeout": "1.5s",
//       "waitForReady": true,
//       "maxRequestMessageBytes": 65536,
//       "maxResponseMessageBytes": 65536,
//       "retryPolicy": {
//         "maxAttempts": 3,
//         "initialBackoff": "0.1s", "maxBackoff": "1s",
//         "backoffMultiplier": 2,
//         "retryableStatusCodes": ["UNAVAILABLE"]
//       }
//     }],
//     "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
//   }
//
// A name without a method means all of the service, {} all methods; the most
// special one counts. Fields that are not known, hedging and health checking
// among them, are ignored.
//
// Thread rule: constant.
#ifndef VERBENA_RPC_ROUTING_SERVICE_CONFIG_H_
#define VERBENA_RPC_ROUTING_SERVICE_CONFIG_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rpc::routing {

struct RetryPolicy {
  static constexpr int kMostAttempts = 5;  // more count as so many

  int max_attempts = 0;  // the first one included
  absl::Duration initial_backoff;
  absl::Duration max_backoff;
  double backoff_multiplier = 0;
  uint32_t retryable_codes = 0;  // a bit for each

  bool IsRetryable(uint32_t code) const {
    return code < 32 && (retryable_codes >> code & 1) != 0;
  }
};

struct MethodConfig {
  absl::Duration timeout = absl::InfiniteDuration();
  bool wait_for_ready = false;
  uint64_t max_request_bytes = std::numeric_limits<uint64_t>::max();
  uint64_t max_response_bytes = std::numeric_limits<uint64_t>::max();
  std::optional<RetryPolicy> retry;
};

// In thousandths of a token.
struct RetryThrottling {
  int64_t max_milli_tokens = 0;
  int64_t milli_token_ratio = 0;
};

class ServiceConfig {
 public:
  // INVALID_ARGUMENT names every field that is wrong. An empty text is {}.
  static absl::StatusOr<std::unique_ptr<const ServiceConfig>> Parse(
      const std::string& json);

  // Of "/package.Service/Method"; valid as long as the config.
  const MethodConfig& ForMethod(std::string_view path) const;
  // The balancing policy; empty: it says nothing of it.
  const std::string& policy() const { return policy_; }
  const std::optional<RetryThrottling>& throttling() const {
    return throttling_;
  }

 private:
  friend class ServiceConfigReader;

  ServiceConfig() = default;

  std::string policy_;
  std::optional<RetryThrottling> throttling_;
  std::deque<MethodConfig> methods_;
  // Of methods_. A service's is "/package.Service/".
  std::map<std::string, const MethodConfig*, std::less<>> by_path_;
  MethodConfig none_;
  const MethodConfig* default_ = nullptr;
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_SERVICE_CONFIG_H_
