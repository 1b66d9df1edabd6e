// Brings a QP up for an rdma_cm connection, with our timers in place of
// rdma_cm's. See rdma_cm_connection_manager.h.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_QP_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_QP_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

#include "absl/status/status.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// How many READs (and atomics) may be under way on a QP.
struct ReadLimits {
  uint8_t served;  // max_dest_rd_atomic
  uint8_t issued;  // max_rd_atomic
};

// RESET to RTS. `id` is answering a request, or has its answer. `parameters`
// are clamped (Clamp). The QP is destroyed by the caller where this fails.
absl::Status BringUpQp(Device* device, rdma_cm_id* id, ibv_qp* qp,
                       const ConnectionParameters& parameters,
                       ReadLimits reads);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_RDMA_CM_QP_H_
