// The calls of a channel by their handles.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_ROUTING_ROUTED_CALLS_H_
#define VERBENA_RPC_ROUTING_ROUTED_CALLS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "rpc/transport.h"

namespace rpc::routing {

class RoutedCall;

class RoutedCalls final {
 public:
  CallHandle NewHandle() {
    absl::MutexLock lock(&mutex_);
    return {++last_handle_};
  }
  void Add(CallHandle handle, std::shared_ptr<RoutedCall> call) {
    absl::MutexLock lock(&mutex_);
    calls_.emplace(handle.value, std::move(call));
  }
  // Null where it is over.
  std::shared_ptr<RoutedCall> Find(CallHandle handle) {
    absl::MutexLock lock(&mutex_);
    const auto found = calls_.find(handle.value);
    return found == calls_.end() ? nullptr : found->second;
  }
  void Remove(CallHandle handle) {
    std::shared_ptr<RoutedCall> call;  // not destroyed under the lock
    absl::MutexLock lock(&mutex_);
    const auto found = calls_.find(handle.value);
    call = std::move(found->second);
    calls_.erase(found);
  }

  std::vector<std::shared_ptr<RoutedCall>> All() {
    absl::MutexLock lock(&mutex_);
    std::vector<std::shared_ptr<RoutedCall>> all;
    for (const auto& [handle, call] : calls_) all.push_back(call);
    return all;
  }
  void WaitUntilEmpty() {
    absl::MutexLock lock(&mutex_);
    const auto empty = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return calls_.empty();
    };
    mutex_.Await(absl::Condition(&empty));
  }

 private:
  absl::Mutex mutex_;
  uint64_t last_handle_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, std::shared_ptr<RoutedCall>> calls_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_ROUTED_CALLS_H_
