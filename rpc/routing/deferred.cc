#include "rpc/routing/deferred.h"

#include <utility>

#include "rpc/internal/executor.h"
#include "rpc/logging.h"

namespace rpc::routing {
namespace {

class Job final : public internal::Executor::Task {
 public:
  explicit Job(absl::AnyInvocable<void()> run) : run_(std::move(run)) {}
  ~Job() = default;

  void RunTask() override {
    run_();
    delete this;
  }
  absl::AnyInvocable<void()> TakeBack() { return std::move(run_); }

 private:
  absl::AnyInvocable<void()> run_;
};

}  // namespace

bool RunSoon(absl::AnyInvocable<void()>& run) {
  auto job = std::make_unique<Job>(std::move(run));
  if (internal::Executor::ForCallbacks().Post(job.get())) {
    job.release();
    return true;
  }
  Log(LogLevel::kError, "no thread is to be had for what a channel is to do");
  run = job->TakeBack();
  return false;
}

std::shared_ptr<Timer> Timer::Start(absl::Time time,
                                    absl::AnyInvocable<void()> run) {
  std::shared_ptr<Timer> timer(new Timer(std::move(run)));
  {
    absl::MutexLock lock(&timer->mutex_);
    timer->self_ = timer;
  }
  internal::AlarmClock::Get().Set(timer.get(), time);
  return timer;
}

void Timer::Cancel() {
  if (!internal::AlarmClock::Get().Cancel(this)) return;
  std::shared_ptr<Timer> self;  // the caller has another
  absl::MutexLock lock(&mutex_);
  self = std::move(self_);
}

void Timer::OnTime() {
  std::shared_ptr<Timer> self;
  {
    absl::MutexLock lock(&mutex_);
    self = std::move(self_);
  }
  if (!RunSoon(run_)) run_();
}

}  // namespace rpc::routing
