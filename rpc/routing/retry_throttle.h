// Stops a channel from repeating calls while most of them fail: gRPC's
// retryThrottling. A bucket of tokens; an attempt that fails in a way that
// could be repeated takes one, a call that goes well gives `ratio` back, and
// nothing is repeated while the bucket is at most half full.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_ROUTING_RETRY_THROTTLE_H_
#define VERBENA_RPC_ROUTING_RETRY_THROTTLE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "rpc/routing/service_config.h"

namespace rpc::routing {

class RetryThrottle final {
 public:
  explicit RetryThrottle(const RetryThrottling& limits)
      : limits_(limits), milli_tokens_(limits.max_milli_tokens) {}

  // Whether it may be repeated.
  bool OnFailure() { return Add(-1000) > limits_.max_milli_tokens / 2; }
  void OnSuccess() { Add(limits_.milli_token_ratio); }

 private:
  // Returns what is there then.
  int64_t Add(int64_t milli_tokens) {
    int64_t before = milli_tokens_.load(std::memory_order_relaxed);
    int64_t after;
    do {
      after = std::clamp<int64_t>(before + milli_tokens, 0,
                                  limits_.max_milli_tokens);
    } while (!milli_tokens_.compare_exchange_weak(before, after,
                                                  std::memory_order_relaxed));
    return after;
  }

  const RetryThrottling limits_;
  std::atomic<int64_t> milli_tokens_;
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_RETRY_THROTTLE_H_
