#include "rpc/internal/child_calls.h"

#include "rpc/internal/callback_scope.h"
#include "rpc/internal/executor.h"
#include "rpc/logging.h"

namespace rpc::internal {
namespace {

class Cancellation final : public Executor::Task {
 public:
  explicit Cancellation(
      const absl::flat_hash_set<std::shared_ptr<ChildCall>>& children)
      : children_(children) {}
  void RunTask() override {
    for (const std::shared_ptr<ChildCall>& child : children_) child->Cancel();
    delete this;
  }

 private:
  ~Cancellation() = default;
  const absl::flat_hash_set<std::shared_ptr<ChildCall>> children_;
};

bool IsNull(const void** pointer) { return *pointer == nullptr; }

}  // namespace

void ChildCall::Cancel() {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_ || canceller_ != nullptr) return;
    canceller_ = CallbackScope::ThisThread();
  }
  // Unlocked, as the call may end within, and its context go.
  cancel_();
  absl::MutexLock lock(&mutex_);
  canceller_ = nullptr;
}

void ChildCall::End() {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  if (canceller_ == CallbackScope::ThisThread()) return;
  mutex_.Await(absl::Condition(&IsNull, &canceller_));
}

ChildCalls& ChildCalls::Get() {
  static auto* const children = new ChildCalls;
  return *children;
}

void ChildCalls::Add(const ParentCall& parent,
                     std::shared_ptr<ChildCall> child) {
  absl::MutexLock lock(&mutex_);
  children_[parent].insert(std::move(child));
}

void ChildCalls::Remove(const ParentCall& parent,
                        const std::shared_ptr<ChildCall>& child) {
  absl::MutexLock lock(&mutex_);
  const auto found = children_.find(parent);
  if (found == children_.end()) return;
  found->second.erase(child);
  if (found->second.empty()) children_.erase(found);
}

ChildCalls::Children ChildCalls::Take(const ParentCall& parent) {
  absl::MutexLock lock(&mutex_);
  const auto found = children_.find(parent);
  if (found == children_.end()) return {};
  Children children = std::move(found->second);
  children_.erase(found);
  return children;
}

void ChildCalls::Cancel(const ParentCall& parent) {
  const Children children = Take(parent);
  if (children.empty()) return;
  if (!Executor::ForCallbacks().Post(new Cancellation(children))) {
    Log(LogLevel::kError,
        "no thread can be made to cancel the calls of a handler whose own call "
        "is over");
  }
}

}  // namespace rpc::internal
