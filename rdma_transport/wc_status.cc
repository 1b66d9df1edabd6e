#include "rdma_transport/wc_status.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace rdma {
namespace {

struct Row {
  ibv_wc_status status;
  absl::StatusCode code;
  const char* advice;
};

// ibv_poll_cq(3), IBTA vol. 1, 11.6.2 (completion return statuses).
constexpr Row kTable[] = {
    {IBV_WC_LOC_LEN_ERR, absl::StatusCode::kInternal,
     "a frame larger than the receive buffer"},
    {IBV_WC_LOC_QP_OP_ERR, absl::StatusCode::kInternal,
     "the queue pair refused a work request"},
    {IBV_WC_LOC_PROT_ERR, absl::StatusCode::kInternal,
     "a buffer outside its memory region"},
    {IBV_WC_WR_FLUSH_ERR, absl::StatusCode::kUnavailable,
     "the connection is closed"},
    {IBV_WC_MW_BIND_ERR, absl::StatusCode::kInternal,
     "a memory window could not be bound"},
    {IBV_WC_BAD_RESP_ERR, absl::StatusCode::kInternal,
     "the peer's device answered wrongly"},
    {IBV_WC_LOC_ACCESS_ERR, absl::StatusCode::kInternal,
     "a buffer without the access it needs"},
    {IBV_WC_REM_INV_REQ_ERR, absl::StatusCode::kInternal,
     "the peer's device refused the request"},
    {IBV_WC_REM_ACCESS_ERR, absl::StatusCode::kUnavailable,
     "the peer took back what it had offered"},
    {IBV_WC_REM_OP_ERR, absl::StatusCode::kUnavailable,
     "the peer's device failed"},
    {IBV_WC_RETRY_EXC_ERR, absl::StatusCode::kUnavailable,
     "the peer does not answer: is its machine up, and does the network lose "
     "packets?"},
    {IBV_WC_RNR_RETRY_EXC_ERR, absl::StatusCode::kUnavailable,
     "the peer posted no receives in time: it is overloaded or hangs"},
    {IBV_WC_FATAL_ERR, absl::StatusCode::kUnavailable, "the device failed"},
    {IBV_WC_RESP_TIMEOUT_ERR, absl::StatusCode::kUnavailable,
     "the peer does not answer"},
};

}  // namespace

absl::Status WcStatusToStatus(ibv_wc_status status, std::string_view what) {
  if (status == IBV_WC_SUCCESS) return absl::OkStatus();
  absl::StatusCode code = absl::StatusCode::kInternal;
  const char* advice = "see ibv_poll_cq(3)";
  for (const Row& row : kTable) {
    if (row.status == status) {
      code = row.code;
      advice = row.advice;
      break;
    }
  }
  return absl::Status(
      code, absl::StrCat(std::string(what), ": ", ibv_wc_status_str(status),
                         ": ", advice));
}

}  // namespace rdma
