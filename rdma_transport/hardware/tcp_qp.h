// Takes a QP through its states by what both ends said in setup_message.h.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_QP_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_QP_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/status/status.h"
#include "rdma_transport/hardware/local_port.h"
#include "rdma_transport/hardware/setup_message.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// What this end says of itself. `psn` is of 24 bits, and random, so that late
// packets of an older connection do not fit. `parameters` are clamped (Clamp).
SetupMessage DescribeQp(SetupMessage::Kind kind, const ibv_qp& qp, uint32_t psn,
                        const LocalPort& port,
                        const ConnectionParameters& parameters);

// RESET to RTS. `own` is what DescribeQp said, `peer` what came.
absl::Status BringUpQp(Device* device, ibv_qp* qp, const LocalPort& port,
                       const ConnectionParameters& parameters,
                       const SetupMessage& own, const SetupMessage& peer);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_QP_H_
