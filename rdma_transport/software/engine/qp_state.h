// Which state changes of an RC QP are legal, and which attributes each needs
// and admits: the tables of ibv_modify_qp(3).
//
// Thread rule: none; pure functions.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QP_STATE_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QP_STATE_H_

#include <infiniband/verbs.h>

#include <cstdint>

namespace rdma::soft {

// 0 or EINVAL: whether a QP in `current` may be modified with this mask, to
// `next` (which is `current` where the mask lacks IBV_QP_STATE).
int CheckTransition(ibv_qp_state current, ibv_qp_state next, int mask);

// 0 or EINVAL: whether the values that the mask names are ones that exist on a
// device with one port.
int CheckAttributeValues(const ibv_qp_attr& attributes, int mask,
                         uint32_t max_reads);

// Copies the values that the mask names.
void CopyAttributes(const ibv_qp_attr& from, int mask, ibv_qp_attr* to);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QP_STATE_H_
