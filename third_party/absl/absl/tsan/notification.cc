// Tells ThreadSanitizer what absl::Notification orders. See real.h.
#include "absl/synchronization/notification.h"

#include <sanitizer/tsan_interface.h>

#include "absl/time/time.h"
#include "real.h"

namespace absl {
ABSL_NAMESPACE_BEGIN

using verbena_tsan::Real;

// The library sets a flag and the waiting side reads it, at first without the
// mutex; HasBeenNotified reads it in code that the sanitizer sees.
void Notification::Notify() {
  static auto* const real =
      Real<void(Notification*)>("12Notification6NotifyEv");
  __tsan_release(&notified_yet_);
  real(this);
}

void Notification::WaitForNotification() const {
  static auto* const real = Real<void(const Notification*)>(
      "12Notification19WaitForNotificationEv", "NK");
  real(this);
  __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const real = Real<bool(const Notification*, Duration)>(
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE", "NK");
  const bool notified = real(this, timeout);
  if (notified) __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const real = Real<bool(const Notification*, Time)>(
      "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE", "NK");
  const bool notified = real(this, deadline);
  if (notified) __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
