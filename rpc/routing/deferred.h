// Functions that run on a thread of the executor for callbacks, where no
// transport and no caller of the user's is on the stack: soon, or at a time.
//
//   std::shared_ptr<Timer> timer = Timer::Start(deadline, [self] { ... });
//   timer->Cancel();
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_ROUTING_DEFERRED_H_
#define VERBENA_RPC_ROUTING_DEFERRED_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/internal/alarm_clock.h"

namespace rpc::routing {

// False, and `run` is as it was, where there is no thread to be had.
bool RunSoon(absl::AnyInvocable<void()>& run);

class Timer final : private internal::AlarmClock::Alarm {
 public:
  // Runs `run` at `time`; where no thread is to be had then, on the clock's.
  static std::shared_ptr<Timer> Start(absl::Time time,
                                      absl::AnyInvocable<void()> run);

  // It may run all the same, where its time has come.
  void Cancel();

 private:
  explicit Timer(absl::AnyInvocable<void()> run) : run_(std::move(run)) {}

  void OnTime() override;

  absl::AnyInvocable<void()> run_;
  absl::Mutex mutex_;
  // The clock's reference, until it has gone off or is cancelled.
  std::shared_ptr<Timer> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_DEFERRED_H_
