#include "rdma_transport/hardware/qp_setup.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

constexpr uint8_t kMaxFiveBits = 31;  // timeout, min_rnr_timer

uint8_t ClampReads(uint8_t wished, int limit) {
  return static_cast<uint8_t>(std::clamp<int>(wished, 0, std::max(limit, 0)));
}

std::string_view NameOf(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_INIT:
      return "INIT";
    case IBV_QPS_RTR:
      return "RTR";
    case IBV_QPS_RTS:
      return "RTS";
    case IBV_QPS_ERR:
      return "ERR";
    default:
      return "another state";
  }
}

}  // namespace

ConnectionParameters Clamp(const ConnectionParameters& wished,
                           const ibv_device_attr& limits) {
  ConnectionParameters result = wished;
  result.responder_resources =
      ClampReads(wished.responder_resources, limits.max_qp_rd_atom);
  result.initiator_depth =
      ClampReads(wished.initiator_depth, limits.max_qp_init_rd_atom);
  result.retry_count = std::min(wished.retry_count, kMaxRetryCount);
  result.rnr_retry_count = std::min(wished.rnr_retry_count, kMaxRnrRetryCount);
  // 0 is for ever as a timeout, and 655 ms as an RNR timer.
  const ConnectionParameters defaults;
  result.timeout = wished.timeout == 0 ? defaults.timeout
                                       : std::min(wished.timeout, kMaxFiveBits);
  result.min_rnr_timer = wished.min_rnr_timer == 0
                             ? defaults.min_rnr_timer
                             : std::min(wished.min_rnr_timer, kMaxFiveBits);
  return result;
}

absl::Status CheckPrivateData(size_t bytes, size_t max_bytes) {
  if (bytes <= max_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("private data of ", bytes, " bytes: at most ", max_bytes));
}

unsigned int AccessFlags(const ibv_device_attr& limits) {
  unsigned int flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  // Drivers refuse what the device has not.
  if (limits.atomic_cap != IBV_ATOMIC_NONE) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

absl::Status MoveQp(Device* device, ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  const int error = device->ModifyQp(qp, attr, mask);
  if (error == 0) return absl::OkStatus();
  return VerbsError("ibv_modify_qp", error,
                    absl::StrCat("QP ", qp->qp_num, " to ",
                                 std::string(NameOf(attr->qp_state))));
}

void MoveQpToError(Device* device, ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_ERR;
  const absl::Status status = MoveQp(device, qp, &attr, IBV_QP_STATE);
  if (!status.ok()) rpc::Log(rpc::LogLevel::kWarning, status.ToString());
}

}  // namespace rdma
