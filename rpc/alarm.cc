#include "rpc/alarm.h"

#include <utility>

#include "rpc/internal/alarm_clock.h"
#include "rpc/internal/executor.h"
#include "rpc/logging.h"

namespace rpc {

class Alarm::Setting final : public internal::AlarmClock::Alarm,
                             private internal::CompletionQueueTag,
                             private internal::Executor::Task {
 public:
  Setting(CompletionQueue* queue, void* tag) : queue_(queue), tag_(tag) {}
  explicit Setting(std::function<void(bool)> function)
      : function_(std::move(function)) {}

  // `self` is kept until it has happened.
  void Start(std::shared_ptr<Setting> self, absl::Time time) {
    self_ = std::move(self);
    internal::AlarmClock::Get().Set(this, time);
  }
  void Cancel() {
    if (internal::AlarmClock::Get().Cancel(this)) Happen(false);
  }

 private:
  void OnTime() override { Happen(true); }

  void Happen(bool ok) {
    ok_ = ok;
    if (queue_ != nullptr) {
      queue_->Push(this, ok);
    } else if (!internal::Executor::ForCallbacks().Post(this)) {
      RunTask();
    }
  }
  bool FinalizeResult(void** tag, bool* /*ok*/) override {
    const std::shared_ptr<Setting> self = std::move(self_);
    *tag = tag_;
    return true;
  }
  void RunTask() override {
    const std::shared_ptr<Setting> self = std::move(self_);
    // What it holds goes as soon as it has run.
    const std::function<void(bool)> function = std::move(function_);
    function(ok_);
  }

  std::shared_ptr<Setting> self_;
  CompletionQueue* const queue_ = nullptr;
  void* const tag_ = nullptr;
  std::function<void(bool)> function_;
  bool ok_ = false;
};

Alarm::Alarm() = default;
Alarm::~Alarm() { Cancel(); }
Alarm::Alarm(Alarm&& other) noexcept = default;

Alarm& Alarm::operator=(Alarm&& other) noexcept {
  std::swap(setting_, other.setting_);
  return *this;
}

void Alarm::SetUntil(CompletionQueue* queue, absl::Time time, void* tag) {
  if (!queue->Begin()) {
    Log(LogLevel::kError,
        "an alarm was set with a CompletionQueue that is shut down; there will "
        "be no event");
    return;
  }
  Replace(std::make_shared<Setting>(queue, tag), time);
}

void Alarm::SetUntil(absl::Time time, std::function<void(bool)> function) {
  Replace(std::make_shared<Setting>(std::move(function)), time);
}

// This may be destroyed by what happens, as soon as it is set.
void Alarm::Replace(std::shared_ptr<Setting> setting, absl::Time time) {
  Cancel();
  setting_ = setting;
  Setting& started = *setting;
  started.Start(std::move(setting), time);
}

void Alarm::Cancel() {
  if (setting_ != nullptr) setting_->Cancel();
}

}  // namespace rpc
