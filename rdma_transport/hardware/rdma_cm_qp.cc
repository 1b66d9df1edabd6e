#include "rdma_transport/hardware/rdma_cm_qp.h"

#include <algorithm>
#include <cerrno>

#include "absl/status/statusor.h"
#include "rdma_transport/hardware/qp_setup.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

struct QpAttributes {
  ibv_qp_attr attr = {};
  int mask = 0;
};

// What rdma_cm knows: port, P_Key, path, PSNs, QP numbers, RNR retries. What
// its mask leaves out, iWARP does not have.
absl::StatusOr<QpAttributes> AttributesFor(rdma_cm_id* id, ibv_qp_state state) {
  QpAttributes attributes;
  attributes.attr.qp_state = state;
  if (rdma_init_qp_attr(id, &attributes.attr, &attributes.mask) != 0) {
    return VerbsError("rdma_init_qp_attr", errno);
  }
  return attributes;
}

absl::Status MoveToInit(Device* device, rdma_cm_id* id, ibv_qp* qp) {
  absl::StatusOr<QpAttributes> init = AttributesFor(id, IBV_QPS_INIT);
  if (!init.ok()) return init.status();
  init->attr.qp_access_flags = AccessFlags(device->attributes());
  return MoveQp(device, qp, &init->attr, init->mask);
}

absl::Status MoveToRtr(Device* device, rdma_cm_id* id, ibv_qp* qp,
                       const ConnectionParameters& parameters,
                       uint8_t reads_served) {
  absl::StatusOr<QpAttributes> rtr = AttributesFor(id, IBV_QPS_RTR);
  if (!rtr.ok()) return rtr.status();
  rtr->attr.min_rnr_timer = parameters.min_rnr_timer;
  rtr->attr.max_dest_rd_atomic = reads_served;
  if (parameters.mtu.has_value()) {
    rtr->attr.path_mtu = std::min(rtr->attr.path_mtu, *parameters.mtu);
  }
  if (parameters.traffic_class != 0) {
    rtr->attr.ah_attr.grh.traffic_class = parameters.traffic_class;
  }
  return MoveQp(device, qp, &rtr->attr, rtr->mask);
}

absl::Status MoveToRts(Device* device, rdma_cm_id* id, ibv_qp* qp,
                       const ConnectionParameters& parameters,
                       uint8_t reads_issued) {
  absl::StatusOr<QpAttributes> rts = AttributesFor(id, IBV_QPS_RTS);
  if (!rts.ok()) return rts.status();
  rts->attr.timeout = parameters.timeout;
  // rdma_cm has the connecting side's for both.
  rts->attr.retry_cnt = std::min(rts->attr.retry_cnt, parameters.retry_count);
  rts->attr.max_rd_atomic = reads_issued;
  return MoveQp(device, qp, &rts->attr, rts->mask);
}

}  // namespace

absl::Status BringUpQp(Device* device, rdma_cm_id* id, ibv_qp* qp,
                       const ConnectionParameters& parameters,
                       ReadLimits reads) {
  if (absl::Status status = MoveToInit(device, id, qp); !status.ok()) {
    return status;
  }
  if (absl::Status status = MoveToRtr(device, id, qp, parameters, reads.served);
      !status.ok()) {
    return status;
  }
  return MoveToRts(device, id, qp, parameters, reads.issued);
}

}  // namespace rdma
