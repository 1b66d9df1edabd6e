#include "rdma_transport/hardware/tcp_qp.h"

#include <algorithm>

#include "rdma_transport/hardware/qp_setup.h"

namespace rdma {
namespace {

// Of IP packets of RoCE v2, which are routed; InfiniBand needs at least 1 where
// it has a GRH.
constexpr uint8_t kHopLimit = 64;

absl::Status MoveToInit(Device* device, ibv_qp* qp, const LocalPort& port) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = 0;
  attr.port_num = port.port_num;
  attr.qp_access_flags = AccessFlags(device->attributes());
  return MoveQp(
      device, qp, &attr,
      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

ibv_ah_attr PathTo(const SetupMessage& peer, const LocalPort& port,
                   uint8_t traffic_class) {
  ibv_ah_attr path = {};
  path.port_num = port.port_num;
  path.dlid = peer.lid;
  // Within an InfiniBand subnet a LID is enough.
  if (!port.ethernet) return path;
  path.is_global = 1;
  path.grh.dgid = peer.gid;
  path.grh.sgid_index = port.gid_index;
  path.grh.hop_limit = kHopLimit;
  path.grh.traffic_class = traffic_class;
  return path;
}

absl::Status MoveToRtr(Device* device, ibv_qp* qp, const LocalPort& port,
                       const ConnectionParameters& parameters,
                       const SetupMessage& own, const SetupMessage& peer) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = std::min(own.mtu, peer.mtu);
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic =
      std::min(own.responder_resources, peer.initiator_depth);
  attr.min_rnr_timer = parameters.min_rnr_timer;
  attr.ah_attr = PathTo(peer, port, parameters.traffic_class);
  return MoveQp(device, qp, &attr,
                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                    IBV_QP_MIN_RNR_TIMER);
}

absl::Status MoveToRts(Device* device, ibv_qp* qp,
                       const ConnectionParameters& parameters,
                       const SetupMessage& own, const SetupMessage& peer) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = parameters.timeout;
  attr.retry_cnt = std::min(own.retry_count, peer.retry_count);
  attr.rnr_retry = peer.rnr_retry_count;
  attr.sq_psn = own.psn;
  attr.max_rd_atomic = std::min(own.initiator_depth, peer.responder_resources);
  return MoveQp(device, qp, &attr,
                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

}  // namespace

SetupMessage DescribeQp(SetupMessage::Kind kind, const ibv_qp& qp, uint32_t psn,
                        const LocalPort& port,
                        const ConnectionParameters& parameters) {
  SetupMessage message;
  message.kind = kind;
  message.mtu =
      std::min(port.active_mtu, parameters.mtu.value_or(port.active_mtu));
  message.qp_num = qp.qp_num;
  message.psn = psn;
  message.gid = port.gid;
  message.lid = port.lid;
  message.responder_resources = parameters.responder_resources;
  message.initiator_depth = parameters.initiator_depth;
  message.retry_count = parameters.retry_count;
  message.rnr_retry_count = parameters.rnr_retry_count;
  message.private_data = parameters.private_data;
  return message;
}

absl::Status BringUpQp(Device* device, ibv_qp* qp, const LocalPort& port,
                       const ConnectionParameters& parameters,
                       const SetupMessage& own, const SetupMessage& peer) {
  if (absl::Status status = MoveToInit(device, qp, port); !status.ok()) {
    return status;
  }
  if (absl::Status status = MoveToRtr(device, qp, port, parameters, own, peer);
      !status.ok()) {
    return status;
  }
  return MoveToRts(device, qp, parameters, own, peer);
}

}  // namespace rdma
