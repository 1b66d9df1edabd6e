// Tells ThreadSanitizer that the last copy of an absl::Status may free what all
// the copies share. See real.h.
#include "absl/status/status.h"

#include <sanitizer/tsan_interface.h>

#include <cstdint>

#include "real.h"

// The sanitizer's, without a header in g++.
extern "C" {
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace absl {
ABSL_NAMESPACE_BEGIN

void Status::UnrefNonInlined(uintptr_t rep) {
  static auto* const real =
      verbena_tsan::Real<void(uintptr_t)>("6Status15UnrefNonInlinedEm");
  // The counting is the library's and unseen. Whether this call frees is known
  // only inside, so that freeing is no access to the sanitizer.
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  real(rep);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}

ABSL_NAMESPACE_END
}  // namespace absl
