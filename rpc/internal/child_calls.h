// Calls that handlers make for the calls that they serve, and that are to be
// cancelled with these: behind ClientContext::FromServerContext.
//
// A call on the server does not know its children: most have none, and pay
// nothing. It tells this registry when it is cut off, which is rare, and where
// a flag says so, when it ends (ServerCall::AddChild).
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_INTERNAL_CHILD_CALLS_H_
#define VERBENA_RPC_INTERNAL_CHILD_CALLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "rpc/transport.h"

namespace rpc::internal {

// Names a call on a server in the process.
struct ParentCall {
  const void* server = nullptr;
  CallHandle call;

  bool operator==(const ParentCall&) const = default;
  template <class H>
  friend H AbslHashValue(H hash, const ParentCall& parent) {
    return H::combine(std::move(hash), parent.server, parent.call.value);
  }
};

// A child, as the registry knows it.
class ChildCall {
 public:
  explicit ChildCall(std::function<void()> cancel)
      : cancel_(std::move(cancel)) {}

  // Calls `cancel`, unless the child is over.
  void Cancel();
  // The child is over: `cancel` does not run any more when this returns, but
  // for the one that this runs within.
  void End();

 private:
  const std::function<void()> cancel_;
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // CallbackScope::ThisThread of who is in `cancel`.
  const void* canceller_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

class ChildCalls {
 public:
  // Never destroyed.
  static ChildCalls& Get();

  // `child` is cancelled with `parent`. Who adds looks afterwards whether the
  // parent is over already.
  void Add(const ParentCall& parent, std::shared_ptr<ChildCall> child);
  // No effect where it is not there any more.
  void Remove(const ParentCall& parent,
              const std::shared_ptr<ChildCall>& child);
  // Cancels what was added, on a thread of Executor::ForCallbacks. Does not
  // block, so that a transport may call it anywhere.
  void Cancel(const ParentCall& parent);

 private:
  using Children = absl::flat_hash_set<std::shared_ptr<ChildCall>>;

  Children Take(const ParentCall& parent);

  absl::Mutex mutex_;
  absl::flat_hash_map<ParentCall, Children> children_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CHILD_CALLS_H_
