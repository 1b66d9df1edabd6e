// UCX's worker with one endpoint, as ucx_bench's two sides use it.
//
// Not thread-safe. The first error stays: status().
#ifndef VERBENA_BENCHMARKS_PEERS_UCX_WORKER_H_
#define VERBENA_BENCHMARKS_PEERS_UCX_WORKER_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/peers/ucx_messages.h"

namespace benchmarks {

absl::Status ToStatus(ucs_status_t status, const char* what);

// What UCX still uses of a call.
struct Pending {
  class Worker* worker = nullptr;
  int sends = 0;
  void* held = nullptr;  // received data that is being sent
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    if (endpoint_ != nullptr) Close();
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }

  absl::Status Open();
  absl::StatusOr<std::string> HexAddress() const;
  absl::Status Connect(const std::string& hex_address);

  // Calls T::Method(message) of `object` with each message `id`.
  template <auto Method, typename T>
  absl::Status Handle(MessageId id, T* object);

  // `header` and `data` have to stay until pending->sends is 0 again.
  void Send(ucp_ep_h endpoint, MessageId id, const Header* header,
            const void* data, size_t bytes, Pending* pending,
            uint32_t flags = 0);
  // Fetches rendezvous data. True: it is there; false: `done` will be called
  // with `user_data`.
  bool Fetch(void* descriptor, void* buffer, size_t bytes,
             ucp_am_recv_data_nbx_callback_t done, void* user_data);
  // Null: nothing is left to be sent. Else to be asked by IsFlushed.
  ucs_status_ptr_t Flush() {
    ucp_request_param_t param = {};
    return ucp_ep_flush_nbx(endpoint_, &param);
  }
  // Frees the request when it is over.
  static bool IsFlushed(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return true;
    if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
    ucp_request_free(request);
    return true;
  }
  void Release(void* data) { ucp_am_data_release(worker_, data); }

  // Whether there was anything to do.
  bool Progress() { return ucp_worker_progress(worker_) != 0; }

  ucp_ep_h endpoint() const { return endpoint_; }
  // The first thing that went wrong.
  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& status) { status_.Update(status); }

 private:
  static void OnSent(void* request, ucs_status_t status, void* user_data);
  void Close();

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  absl::Status status_;
};

// A message as the callback gets it.
struct Message {
  MessageId id;
  Header header;
  void* data;  // of a rendezvous: its descriptor
  size_t bytes;
  const ucp_am_recv_param_t* param;

  bool is_rendezvous() const {
    return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  }
  // Whether the receiver may keep the data, by returning UCS_INPROGRESS.
  bool can_be_held() const {
    return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  }
};

template <typename T>
struct Handler {
  T* object;
  MessageId id;
};

template <auto Method, typename T>
absl::Status Worker::Handle(MessageId id, T* object) {
  ucp_am_handler_param_t params = {};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  // Lives as long as the process: a few for each worker.
  params.arg = new Handler<T>{object, id};
  params.cb = [](void* arg, const void* header, size_t header_bytes, void* data,
                 size_t bytes, const ucp_am_recv_param_t* param) {
    const auto& handler = *static_cast<Handler<T>*>(arg);
    Message message = {handler.id, {}, data, bytes, param};
    if (header_bytes == sizeof(Header)) {
      std::memcpy(&message.header, header, sizeof(Header));
    }
    return (handler.object->*Method)(message);
  };
  return ToStatus(ucp_worker_set_am_recv_handler(worker_, &params),
                  "ucp_worker_set_am_recv_handler");
}

inline void Worker::Send(ucp_ep_h endpoint, MessageId id, const Header* header,
                         const void* data, size_t bytes, Pending* pending,
                         uint32_t flags) {
  pending->worker = this;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = OnSent;
  param.user_data = pending;
  if (flags != 0) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
  }
  const ucs_status_ptr_t request = ucp_am_send_nbx(
      endpoint, id, header, sizeof(*header), data, bytes, &param);
  if (request == nullptr) return;
  if (UCS_PTR_IS_ERR(request)) {
    return Fail(ToStatus(UCS_PTR_STATUS(request), "ucp_am_send_nbx"));
  }
  ++pending->sends;
}

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_UCX_WORKER_H_
