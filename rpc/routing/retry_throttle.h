// Stops a process from repeating calls to a server while most of them fail:
// gRPC's retryThrottling (its proposal A6). A bucket of tokens; an attempt that
// fails in a way that could be repeated takes one, a call that goes well gives
// `ratio` back, and nothing is repeated while the bucket is at most half full.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_ROUTING_RETRY_THROTTLE_H_
#define VERBENA_RPC_ROUTING_RETRY_THROTTLE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/routing/service_config.h"

namespace rpc::routing {

class RetryThrottle final {
 public:
  explicit RetryThrottle(const RetryThrottling& limits)
      : limits_(limits), milli_tokens_(limits.max_milli_tokens) {}

  // The one of all channels of this process to a server of this name, for as
  // long as the process lives: a channel that is made anew knows how the server
  // fares. Other limits than it has count from now on, for all of them; the
  // bucket is as full then as it was.
  static std::shared_ptr<RetryThrottle> ForServer(
      const std::string& name, const RetryThrottling& limits);

  // Whether it may be repeated.
  bool OnFailure() {
    absl::MutexLock lock(&mutex_);
    Add(-1000);
    return milli_tokens_ > limits_.max_milli_tokens / 2;
  }
  void OnSuccess() {
    absl::MutexLock lock(&mutex_);
    Add(limits_.milli_token_ratio);
  }

 private:
  void Add(int64_t milli_tokens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetLimits(const RetryThrottling& limits);

  absl::Mutex mutex_;
  RetryThrottling limits_ ABSL_GUARDED_BY(mutex_);
  int64_t milli_tokens_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_RETRY_THROTTLE_H_
