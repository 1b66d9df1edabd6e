// Behind ChannelInterface::NotifyOnStateChange. Not in channel_interface.cc, as
// completion queues know channels, and not the other way round.
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "rpc/channel_interface.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/executor.h"
#include "rpc/logging.h"

namespace rpc::internal {
namespace {

// Its own, as it waits for long: what is for other callbacks must not wait
// behind it.
Executor& Watchers() {
  static auto* const watchers = new Executor({.detached = true});
  return *watchers;
}

class StateWatch final : public Executor::Task, private CompletionQueueTag {
 public:
  StateWatch(std::shared_ptr<ChannelInterface> channel,
             ConnectivityState last_observed, absl::Time deadline,
             CompletionQueue* queue, void* tag)
      : channel_(std::move(channel)),
        last_observed_(last_observed),
        deadline_(deadline),
        queue_(*queue),
        tag_(tag) {}

  void RunTask() override {
    const bool changed =
        channel_->WaitForStateChange(last_observed_, deadline_);
    channel_.reset();
    queue_.Push(this, changed);
  }
  void Fail() { queue_.Push(this, false); }

 private:
  ~StateWatch() = default;

  bool FinalizeResult(void** tag, bool* /*ok*/) override {
    *tag = tag_;
    delete this;
    return true;
  }

  std::shared_ptr<ChannelInterface> channel_;
  const ConnectivityState last_observed_;
  const absl::Time deadline_;
  CompletionQueue& queue_;
  void* const tag_;
};

}  // namespace

void NotifyOnStateChange(std::shared_ptr<ChannelInterface> channel,
                         ConnectivityState last_observed, absl::Time deadline,
                         CompletionQueue* queue, void* tag) {
  if (!queue->Begin()) {
    Log(LogLevel::kError,
        "NotifyOnStateChange with a CompletionQueue that is shut down; there "
        "will be no event");
    return;
  }
  auto* const watch =
      new StateWatch(std::move(channel), last_observed, deadline, queue, tag);
  if (!Watchers().Post(watch)) watch->Fail();
}

}  // namespace rpc::internal
