#include "benchmarks/peers/ucx_worker.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gflags/gflags.h"

DEFINE_string(ucx_tls, "posix,sysv,cma", "the transports UCX chooses from");

namespace benchmarks {

absl::Status ToStatus(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, ": ", ucs_status_string(status)));
}

absl::Status Worker::Open() {
  ucp_config_t* config;
  absl::Status status =
      ToStatus(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  if (!status.ok()) return status;
  status = ToStatus(ucp_config_modify(config, "TLS", FLAGS_ucx_tls.c_str()),
                    "ucp_config_modify");
  if (status.ok()) {
    ucp_params_t params = {};
    params.field_mask =
        UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_AM;
    status = ToStatus(ucp_init(&params, config, &context_), "ucp_init");
  }
  ucp_config_release(config);
  if (!status.ok()) return status;
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  return ToStatus(ucp_worker_create(context_, &params, &worker_),
                  "ucp_worker_create");
}

absl::StatusOr<std::string> Worker::HexAddress() const {
  ucp_address_t* address;
  size_t bytes;
  const absl::Status status =
      ToStatus(ucp_worker_get_address(worker_, &address, &bytes),
               "ucp_worker_get_address");
  if (!status.ok()) return status;
  const std::string hex = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(address), bytes));
  ucp_worker_release_address(worker_, address);
  return hex;
}

absl::Status Worker::Connect(const std::string& hex_address) {
  const std::string address = absl::HexStringToBytes(hex_address);
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  return ToStatus(ucp_ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
}

// The other side may be gone, so that there is nothing to wait for.
void Worker::Close() {
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  for (int i = 0; i < 1000 && ucp_request_check_status(request) != UCS_OK;
       ++i) {
    ucp_worker_progress(worker_);
  }
  ucp_request_free(request);
}

void Worker::OnSent(void* request, ucs_status_t status, void* user_data) {
  auto& pending = *static_cast<Pending*>(user_data);
  if (status != UCS_OK) pending.worker->Fail(ToStatus(status, "send"));
  --pending.sends;
  if (pending.held != nullptr) {
    pending.worker->Release(pending.held);
    pending.held = nullptr;
  }
  ucp_request_free(request);
}

bool Worker::Fetch(void* descriptor, void* buffer, size_t bytes,
                   ucp_am_recv_data_nbx_callback_t done, void* user_data) {
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = done;
  param.user_data = user_data;
  const ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(worker_, descriptor, buffer, bytes, &param);
  if (request == nullptr) return true;
  if (UCS_PTR_IS_ERR(request)) {
    Fail(ToStatus(UCS_PTR_STATUS(request), "ucp_am_recv_data_nbx"));
  }
  return false;
}

}  // namespace benchmarks
