// Turns what a verbs call left in errno into a status that says what to do.
#ifndef VERBENA_RDMA_TRANSPORT_VERBS_VERBS_ERROR_H_
#define VERBENA_RDMA_TRANSPORT_VERBS_VERBS_ERROR_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace rdma {

// "ibv_reg_mr: Cannot allocate memory, 64 MiB: raise RLIMIT_MEMLOCK ..." where
// `call` is "ibv_reg_mr" and `what` "64 MiB". The code says what the caller
// should do next: RESOURCE_EXHAUSTED (ENOMEM, EMFILE, ...: use less),
// INVALID_ARGUMENT, FAILED_PRECONDITION (EBUSY), UNIMPLEMENTED (EOPNOTSUPP),
// UNAVAILABLE (the device went away), else INTERNAL.
absl::Status VerbsError(std::string_view call, int error,
                        std::string_view what = {});

// The same of ibv_reg_mr for `bytes`. Pinned memory is limited: ENOMEM, EAGAIN
// and EPERM, which devices give for it, are RESOURCE_EXHAUSTED and say what the
// limit is and how to raise it, unless there is none.
absl::Status RegistrationError(int error, uint64_t bytes);

// For the verbs that destroy: they fail only where the order of destruction is
// wrong or the device is broken, and all that is left to do is to say so.
void LogIfFailed(std::string_view call, int error);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_VERBS_VERBS_ERROR_H_
