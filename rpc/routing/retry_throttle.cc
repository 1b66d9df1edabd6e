#include "rpc/routing/retry_throttle.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rpc::routing {
namespace {

// Never destroyed: channels may outlive static objects.
struct Throttles {
  absl::Mutex mutex;
  std::map<std::string, std::shared_ptr<RetryThrottle>> by_name
      ABSL_GUARDED_BY(mutex);
};

Throttles& AllThrottles() {
  static auto* const throttles = new Throttles;
  return *throttles;
}

}  // namespace

std::shared_ptr<RetryThrottle> RetryThrottle::ForServer(
    const std::string& name, const RetryThrottling& limits) {
  Throttles& all = AllThrottles();
  absl::MutexLock lock(&all.mutex);
  std::shared_ptr<RetryThrottle>& throttle = all.by_name[name];
  if (throttle == nullptr) {
    throttle = std::make_shared<RetryThrottle>(limits);
  } else {
    throttle->SetLimits(limits);
  }
  return throttle;
}

void RetryThrottle::SetLimits(const RetryThrottling& limits) {
  absl::MutexLock lock(&mutex_);
  const double share = static_cast<double>(milli_tokens_) /
                       static_cast<double>(limits_.max_milli_tokens);
  const RetryThrottling before = std::exchange(limits_, limits);
  if (before.max_milli_tokens == limits.max_milli_tokens) return;
  milli_tokens_ = static_cast<int64_t>(
      share * static_cast<double>(limits.max_milli_tokens));
}

void RetryThrottle::Add(int64_t milli_tokens) {
  milli_tokens_ = std::clamp<int64_t>(milli_tokens_ + milli_tokens, 0,
                                      limits_.max_milli_tokens);
}

}  // namespace rpc::routing
