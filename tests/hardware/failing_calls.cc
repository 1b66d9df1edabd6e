#include "tests/hardware/failing_calls.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <utility>

namespace rdma {
namespace {

FaultPlan* current_plan = nullptr;

std::function<void(rdma_cm_event*)>& EventFilter() {
  static auto* const filter = new std::function<void(rdma_cm_event*)>;
  return *filter;
}

// The errno that this call is to fail with, or 0.
int Planned(const char* call) {
  return current_plan == nullptr ? 0 : current_plan->OnCall(call);
}

void Created(const char* kind) {
  if (current_plan != nullptr) current_plan->OnCreated(kind);
}

void Destroyed(const char* kind) {
  if (current_plan != nullptr) current_plan->OnDestroyed(kind);
}

}  // namespace

void SetFaultPlan(FaultPlan* plan) { current_plan = plan; }

void SetCmEventFilter(std::function<void(rdma_cm_event*)> filter) {
  EventFilter() = std::move(filter);
}

}  // namespace rdma

// Macros, because a wrapper is a name in four places. `type`, `parameters` and
// `arguments` are as the library declares them; the linker wants these names.
// NOLINTBEGIN(bugprone-macro-parentheses, bugprone-reserved-identifier)

// Returns an object, or null and errno.
#define WRAP_CREATE(kind, type, name, parameters, arguments) \
  extern "C" type __real_##name parameters;                  \
  extern "C" type __wrap_##name parameters {                 \
    if (const int error = rdma::Planned(#name)) {            \
      errno = error;                                         \
      return nullptr;                                        \
    }                                                        \
    auto* const object = __real_##name arguments;            \
    if (object != nullptr) rdma::Created(kind);              \
    return object;                                           \
  }

// Returns 0, or an errno value.
#define WRAP_ERRNO(name, parameters, arguments)               \
  extern "C" int __real_##name parameters;                    \
  extern "C" int __wrap_##name parameters {                   \
    if (const int error = rdma::Planned(#name)) return error; \
    return __real_##name arguments;                           \
  }

// Returns -1 and errno.
#define WRAP_MINUS_ONE(type, name, parameters, arguments) \
  extern "C" type __real_##name parameters;               \
  extern "C" type __wrap_##name parameters {              \
    if (const int error = rdma::Planned(#name)) {         \
      errno = error;                                      \
      return -1;                                          \
    }                                                     \
    return __real_##name arguments;                       \
  }

// Never made to fail; 0 says that the object is gone.
#define WRAP_DESTROY(kind, name, type)         \
  extern "C" int __real_##name(type* object);  \
  extern "C" int __wrap_##name(type* object) { \
    const int result = __real_##name(object);  \
    if (result == 0) rdma::Destroyed(kind);    \
    return result;                             \
  }

// --- libibverbs --------------------------------------------------------------

WRAP_CREATE("context", ibv_context*, ibv_open_device, (ibv_device * device),
            (device))
WRAP_CREATE("PD", ibv_pd*, ibv_alloc_pd, (ibv_context * context), (context))
WRAP_CREATE("MR", ibv_mr*, ibv_reg_mr_iova2,
            (ibv_pd * pd, void* addr, size_t length, uint64_t iova,
             unsigned int access),
            (pd, addr, length, iova, access))
WRAP_CREATE("completion channel", ibv_comp_channel*, ibv_create_comp_channel,
            (ibv_context * context), (context))
WRAP_CREATE("CQ", ibv_cq*, ibv_create_cq,
            (ibv_context * context, int cqe, void* cq_context,
             ibv_comp_channel* channel, int comp_vector),
            (context, cqe, cq_context, channel, comp_vector))
WRAP_CREATE("SRQ", ibv_srq*, ibv_create_srq,
            (ibv_pd * pd, ibv_srq_init_attr* init), (pd, init))
WRAP_CREATE("QP", ibv_qp*, ibv_create_qp, (ibv_pd * pd, ibv_qp_init_attr* init),
            (pd, init))
WRAP_DESTROY("context", ibv_close_device, ibv_context)
WRAP_DESTROY("PD", ibv_dealloc_pd, ibv_pd)
WRAP_DESTROY("MR", ibv_dereg_mr, ibv_mr)
WRAP_DESTROY("completion channel", ibv_destroy_comp_channel, ibv_comp_channel)
WRAP_DESTROY("CQ", ibv_destroy_cq, ibv_cq)
WRAP_DESTROY("SRQ", ibv_destroy_srq, ibv_srq)
WRAP_DESTROY("QP", ibv_destroy_qp, ibv_qp)
WRAP_ERRNO(ibv_query_device, (ibv_context * context, ibv_device_attr* attr),
           (context, attr))
WRAP_ERRNO(ibv_modify_qp, (ibv_qp * qp, ibv_qp_attr* attr, int mask),
           (qp, attr, mask))
WRAP_ERRNO(ibv_modify_srq, (ibv_srq * srq, ibv_srq_attr* attr, int mask),
           (srq, attr, mask))
WRAP_MINUS_ONE(int, ibv_query_gid,
               (ibv_context * context, uint8_t port, int index, ibv_gid* gid),
               (context, port, index, gid))
WRAP_MINUS_ONE(ssize_t, _ibv_query_gid_table,
               (ibv_context * context, ibv_gid_entry* entries, size_t max,
                uint32_t flags, size_t entry_bytes),
               (context, entries, max, flags, entry_bytes))

// --- librdmacm ---------------------------------------------------------------

WRAP_CREATE("event channel", rdma_event_channel*, rdma_create_event_channel, (),
            ())
WRAP_DESTROY("rdma_cm_id", rdma_destroy_id, rdma_cm_id)
WRAP_MINUS_ONE(int, rdma_bind_addr, (rdma_cm_id * id, sockaddr* address),
               (id, address))
WRAP_MINUS_ONE(int, rdma_listen, (rdma_cm_id * id, int backlog), (id, backlog))
WRAP_MINUS_ONE(int, rdma_resolve_addr,
               (rdma_cm_id * id, sockaddr* source, sockaddr* target,
                int timeout_ms),
               (id, source, target, timeout_ms))
WRAP_MINUS_ONE(int, rdma_resolve_route, (rdma_cm_id * id, int timeout_ms),
               (id, timeout_ms))
WRAP_MINUS_ONE(int, rdma_connect,
               (rdma_cm_id * id, rdma_conn_param* parameters), (id, parameters))
WRAP_MINUS_ONE(int, rdma_establish, (rdma_cm_id * id), (id))
WRAP_MINUS_ONE(int, rdma_accept, (rdma_cm_id * id, rdma_conn_param* parameters),
               (id, parameters))
WRAP_MINUS_ONE(int, rdma_reject,
               (rdma_cm_id * id, const void* reason, uint8_t bytes),
               (id, reason, bytes))
WRAP_MINUS_ONE(int, rdma_migrate_id,
               (rdma_cm_id * id, rdma_event_channel* channel), (id, channel))
WRAP_MINUS_ONE(int, rdma_init_qp_attr,
               (rdma_cm_id * id, ibv_qp_attr* attr, int* mask),
               (id, attr, mask))
WRAP_MINUS_ONE(int, rdma_set_option,
               (rdma_cm_id * id, int level, int option, void* value,
                size_t bytes),
               (id, level, option, value, bytes))
WRAP_MINUS_ONE(int, rdma_disconnect, (rdma_cm_id * id), (id))

extern "C" void __real_rdma_destroy_event_channel(rdma_event_channel* channel);
extern "C" void __wrap_rdma_destroy_event_channel(rdma_event_channel* channel) {
  __real_rdma_destroy_event_channel(channel);
  rdma::Destroyed("event channel");
}

extern "C" int __real_rdma_create_id(rdma_event_channel* channel,
                                     rdma_cm_id** id, void* context,
                                     rdma_port_space space);
extern "C" int __wrap_rdma_create_id(rdma_event_channel* channel,
                                     rdma_cm_id** id, void* context,
                                     rdma_port_space space) {
  if (const int error = rdma::Planned("rdma_create_id")) {
    errno = error;
    return -1;
  }
  const int result = __real_rdma_create_id(channel, id, context, space);
  if (result == 0) rdma::Created("rdma_cm_id");
  return result;
}

// An id comes with each connection request. Asking for events is no call that
// is made to fail: there being none is how most of them end.
extern "C" int __real_rdma_get_cm_event(rdma_event_channel* channel,
                                        rdma_cm_event** event);
extern "C" int __wrap_rdma_get_cm_event(rdma_event_channel* channel,
                                        rdma_cm_event** event) {
  const int result = __real_rdma_get_cm_event(channel, event);
  if (result != 0) return result;
  rdma::Created("unacknowledged event");
  if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    rdma::Created("rdma_cm_id");
  }
  if (rdma::EventFilter()) rdma::EventFilter()(*event);
  return 0;
}
WRAP_DESTROY("unacknowledged event", rdma_ack_cm_event, rdma_cm_event)

// --- The kernel --------------------------------------------------------------

WRAP_MINUS_ONE(int, epoll_create1, (int flags), (flags))
WRAP_MINUS_ONE(int, epoll_ctl,
               (int epoll, int operation, int fd, epoll_event* event),
               (epoll, operation, fd, event))
WRAP_MINUS_ONE(int, timerfd_create, (int clock, int flags), (clock, flags))
WRAP_MINUS_ONE(int, socket, (int domain, int type, int protocol),
               (domain, type, protocol))
WRAP_MINUS_ONE(int, bind, (int fd, const sockaddr* address, socklen_t length),
               (fd, address, length))
WRAP_MINUS_ONE(int, listen, (int fd, int backlog), (fd, backlog))
WRAP_MINUS_ONE(int, connect,
               (int fd, const sockaddr* address, socklen_t length),
               (fd, address, length))
WRAP_MINUS_ONE(int, accept4,
               (int fd, sockaddr* address, socklen_t* length, int flags),
               (fd, address, length, flags))
WRAP_MINUS_ONE(ssize_t, send,
               (int fd, const void* buffer, size_t bytes, int flags),
               (fd, buffer, bytes, flags))

// NOLINTEND(bugprone-macro-parentheses, bugprone-reserved-identifier)
