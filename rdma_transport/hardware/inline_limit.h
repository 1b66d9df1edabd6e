// How much inline data the QPs of a device take.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_INLINE_LIMIT_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_INLINE_LIMIT_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace rdma {

// The most inline bytes that an RC QP with one SGE can be made with; 0 where
// the device has none. ibv_query_device(3) does not tell it, so this makes QPs,
// about a dozen, and destroys them: some milliseconds, once a device. Fails
// where not even a QP without inline data can be made.
absl::StatusOr<uint32_t> FindInlineLimit(ibv_context* context);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_INLINE_LIMIT_H_
