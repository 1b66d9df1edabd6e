// What is to happen at a time, on one thread of the process, which is made when
// the first alarm is set.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_INTERNAL_ALARM_CLOCK_H_
#define VERBENA_RPC_INTERNAL_ALARM_CLOCK_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace rpc::internal {

class AlarmClock {
 public:
  // One that is set must live until OnTime or a Cancel that says true.
  class Alarm {
   public:
    // On the clock's thread, or on that of Set where there is no thread to be
    // had: must not block.
    virtual void OnTime() = 0;

   protected:
    ~Alarm() = default;

   private:
    friend class AlarmClock;
    bool is_set_ = false;
    std::multimap<absl::Time, Alarm*>::iterator place_;
  };

  // Never destroyed.
  static AlarmClock& Get();

  void Set(Alarm* alarm, absl::Time time);
  // True: it was set, and OnTime does not come.
  bool Cancel(Alarm* alarm);

 private:
  static void* ThreadMain(void* clock);
  void Run();
  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool has_thread_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<absl::Time, Alarm*> alarms_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_ALARM_CLOCK_H_
