#include "rdma_transport/software/engine/qp_state.h"

#include <cerrno>

namespace rdma::soft {
namespace {

struct Transition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

constexpr int kPathAttributes = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

// From any state but RESET, RESET and ERR can be reached without attributes.
constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_RESET, 0, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0,
     IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS,
     IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | kPathAttributes},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0,
     IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | kPathAttributes},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0,
     IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | kPathAttributes},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS |
         IBV_QP_MIN_RNR_TIMER | kPathAttributes},
};

constexpr int kAnyAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                           IBV_ACCESS_MW_BIND;

}  // namespace

int CheckTransition(ibv_qp_state current, ibv_qp_state next, int mask) {
  // Valid with every transition.
  const int given = mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
  if (current != IBV_QPS_RESET &&
      (next == IBV_QPS_RESET || next == IBV_QPS_ERR)) {
    return given == 0 ? 0 : EINVAL;
  }
  for (const Transition& transition : kTransitions) {
    if (transition.from != current || transition.to != next) continue;
    const bool complete = (given & transition.required) == transition.required;
    const bool admitted =
        (given & ~(transition.required | transition.optional)) == 0;
    return complete && admitted ? 0 : EINVAL;
  }
  return EINVAL;
}

int CheckAttributeValues(const ibv_qp_attr& attributes, int mask,
                         uint32_t max_reads) {
  const auto bad = [mask](int bit, bool out_of_range) {
    return (mask & bit) != 0 && out_of_range;
  };
  if (bad(IBV_QP_PORT, attributes.port_num != 1) ||
      bad(IBV_QP_PKEY_INDEX, attributes.pkey_index != 0) ||
      bad(IBV_QP_ACCESS_FLAGS,
          (attributes.qp_access_flags & ~unsigned{kAnyAccess}) != 0) ||
      bad(IBV_QP_PATH_MTU, attributes.path_mtu < IBV_MTU_256 ||
                               attributes.path_mtu > IBV_MTU_4096) ||
      bad(IBV_QP_MIN_RNR_TIMER, attributes.min_rnr_timer > 31) ||
      bad(IBV_QP_TIMEOUT, attributes.timeout > 31) ||
      bad(IBV_QP_RETRY_CNT, attributes.retry_cnt > 7) ||
      bad(IBV_QP_RNR_RETRY, attributes.rnr_retry > 7) ||
      bad(IBV_QP_MAX_QP_RD_ATOMIC, attributes.max_rd_atomic > max_reads) ||
      bad(IBV_QP_MAX_DEST_RD_ATOMIC,
          attributes.max_dest_rd_atomic > max_reads)) {
    return EINVAL;
  }
  return 0;
}

void CopyAttributes(const ibv_qp_attr& from, int mask, ibv_qp_attr* to) {
  const auto copy = [mask](int bit, const auto& value, auto* target) {
    if ((mask & bit) != 0) *target = value;
  };
  copy(IBV_QP_EN_SQD_ASYNC_NOTIFY, from.en_sqd_async_notify,
       &to->en_sqd_async_notify);
  copy(IBV_QP_ACCESS_FLAGS, from.qp_access_flags, &to->qp_access_flags);
  copy(IBV_QP_PKEY_INDEX, from.pkey_index, &to->pkey_index);
  copy(IBV_QP_PORT, from.port_num, &to->port_num);
  copy(IBV_QP_AV, from.ah_attr, &to->ah_attr);
  copy(IBV_QP_PATH_MTU, from.path_mtu, &to->path_mtu);
  copy(IBV_QP_TIMEOUT, from.timeout, &to->timeout);
  copy(IBV_QP_RETRY_CNT, from.retry_cnt, &to->retry_cnt);
  copy(IBV_QP_RNR_RETRY, from.rnr_retry, &to->rnr_retry);
  copy(IBV_QP_RQ_PSN, from.rq_psn, &to->rq_psn);
  copy(IBV_QP_MAX_QP_RD_ATOMIC, from.max_rd_atomic, &to->max_rd_atomic);
  copy(IBV_QP_MIN_RNR_TIMER, from.min_rnr_timer, &to->min_rnr_timer);
  copy(IBV_QP_SQ_PSN, from.sq_psn, &to->sq_psn);
  copy(IBV_QP_MAX_DEST_RD_ATOMIC, from.max_dest_rd_atomic,
       &to->max_dest_rd_atomic);
  copy(IBV_QP_DEST_QPN, from.dest_qp_num, &to->dest_qp_num);
}

}  // namespace rdma::soft
