#include "rpc/internal/alarm_clock.h"

#include <pthread.h>

#include "absl/time/clock.h"
#include "rpc/logging.h"

namespace rpc::internal {

AlarmClock& AlarmClock::Get() {
  static auto* const clock = new AlarmClock();
  return *clock;
}

void AlarmClock::Set(Alarm* alarm, absl::Time time) {
  {
    absl::MutexLock lock(&mutex_);
    if (has_thread_ || StartThread()) {
      alarm->is_set_ = true;
      alarm->place_ = alarms_.emplace(time, alarm);
      if (alarm->place_ == alarms_.begin()) changed_.Signal();
      return;
    }
  }
  Log(LogLevel::kError, "no thread can be made for alarms: one goes off early");
  alarm->OnTime();
}

bool AlarmClock::Cancel(Alarm* alarm) {
  absl::MutexLock lock(&mutex_);
  if (!alarm->is_set_) return false;
  alarm->is_set_ = false;
  alarms_.erase(alarm->place_);
  return true;
}

bool AlarmClock::StartThread() {
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &ThreadMain, this) != 0) return false;
  pthread_setname_np(thread, "verbena-alarms");
  pthread_detach(thread);
  has_thread_ = true;
  return true;
}

void* AlarmClock::ThreadMain(void* clock) {
  static_cast<AlarmClock*>(clock)->Run();
  return nullptr;
}

void AlarmClock::Run() {
  while (true) {
    Alarm* alarm;
    {
      absl::MutexLock lock(&mutex_);
      while (alarms_.empty() || alarms_.begin()->first > absl::Now()) {
        changed_.WaitWithDeadline(&mutex_, alarms_.empty()
                                               ? absl::InfiniteFuture()
                                               : alarms_.begin()->first);
      }
      alarm = alarms_.begin()->second;
      alarms_.erase(alarms_.begin());
      alarm->is_set_ = false;
    }
    alarm->OnTime();
  }
}

}  // namespace rpc::internal
