// Tells ThreadSanitizer what absl::BlockingCounter orders. See real.h.
#include "absl/synchronization/blocking_counter.h"

#include <sanitizer/tsan_interface.h>

#include "real.h"

namespace absl {
ABSL_NAMESPACE_BEGIN

using verbena_tsan::Real;

bool BlockingCounter::DecrementCount() {
  static auto* const real =
      Real<bool(BlockingCounter*)>("15BlockingCounter14DecrementCountEv");
  // Afterwards the counter may be gone, which an acquire of its address does
  // not mind.
  __tsan_release(this);
  const bool last = real(this);
  if (last) __tsan_acquire(this);
  return last;
}

void BlockingCounter::Wait() {
  static auto* const real =
      Real<void(BlockingCounter*)>("15BlockingCounter4WaitEv");
  real(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
