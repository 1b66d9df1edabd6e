// What a failed work completion means for a call.
#ifndef VERBENA_RDMA_TRANSPORT_WC_STATUS_H_
#define VERBENA_RDMA_TRANSPORT_WC_STATUS_H_

#include <infiniband/verbs.h>

#include <string_view>

#include "absl/status/status.h"

namespace rdma {

// The status of the calls of a connection that `status` ended, chosen by what
// the caller should do next: UNAVAILABLE (try again), INTERNAL (a bug of either
// side), PERMISSION_DENIED is never used: keys are ours, not the user's. The
// text names `what` was being done, the completion's status, and what to look
// at.
absl::Status WcStatusToStatus(ibv_wc_status status, std::string_view what);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_WC_STATUS_H_
