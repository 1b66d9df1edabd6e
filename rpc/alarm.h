// Something to happen at a time: an event of a completion queue, or a call of a
// function.
//
//   rpc::Alarm alarm;
//   alarm.Set(&queue, std::chrono::system_clock::now() + 10ms, tag);
//   alarm.Set(std::chrono::system_clock::now() + 10ms, [](bool ok) { ... });
//
// `ok` is true when the time came, and false where the alarm was cancelled
// before. An alarm may be set again once it has gone off or was cancelled.
//
// Thread rule: Set by one thread at a time; Cancel by any. Functions run on a
// thread of the runtime and may block.
#ifndef VERBENA_RPC_ALARM_H_
#define VERBENA_RPC_ALARM_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "rpc/completion_queue.h"
#include "rpc/internal/deadline.h"

namespace rpc {

class Alarm {
 public:
  Alarm();
  // The same and Set.
  template <class T>
  Alarm(CompletionQueue* queue, const T& deadline, void* tag) {
    Set(queue, deadline, tag);
  }
  // Cancels it.
  ~Alarm();
  Alarm(Alarm&& other) noexcept;
  Alarm& operator=(Alarm&& other) noexcept;

  // `deadline`: absl::Time, or a time point of std::chrono's system or steady
  // clock.
  template <class T>
  void Set(CompletionQueue* queue, const T& deadline, void* tag) {
    SetUntil(queue, internal::ToTime(deadline), tag);
  }
  template <class T>
  void Set(const T& deadline, std::function<void(bool)> function) {
    SetUntil(internal::ToTime(deadline), std::move(function));
  }

  // Has it happen at once, with false. No effect where it is not set, or has
  // gone off.
  void Cancel();

 private:
  // One Set. Belongs to itself: what it is for may outlast the alarm.
  class Setting;

  void SetUntil(CompletionQueue* queue, absl::Time time, void* tag);
  void SetUntil(absl::Time time, std::function<void(bool)> function);
  void Replace(std::shared_ptr<Setting> setting, absl::Time time);

  std::shared_ptr<Setting> setting_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_ALARM_H_
