// What both ways of connecting do to a QP: clamp what the user wished for to
// what the device can, and take the QP through its states.
//
// ibv_modify_qp(3); IBTA vol. 1, 10.3.1 (states) and 11.2.5.2 (attributes).
// Thread-safe; none of it blocks for longer than a command to the device takes.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_QP_SETUP_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_QP_SETUP_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/status/status.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// A retry count of 7 never ends on some devices (rxe).
inline constexpr uint8_t kMaxRetryCount = 6;
inline constexpr uint8_t kMaxRnrRetryCount = 7;

// `wished` within what the device and verbs allow: READs, retries, timers.
ConnectionParameters Clamp(const ConnectionParameters& wished,
                           const ibv_device_attr& limits);

// INVALID_ARGUMENT where private data of `bytes` does not fit.
absl::Status CheckPrivateData(size_t bytes, size_t max_bytes);

// What a peer may do through a QP, as far as MRs and windows allow it.
unsigned int AccessFlags(const ibv_device_attr& limits);

// Device::ModifyQp, and errors that name the QP and the state.
absl::Status MoveQp(Device* device, ibv_qp* qp, ibv_qp_attr* attr, int mask);

// From any state; what is posted flushes. Logs where even that fails.
void MoveQpToError(Device* device, ibv_qp* qp);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_QP_SETUP_H_
