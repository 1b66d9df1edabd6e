// What went wrong with a connection, in words that say what to do.
//
// rdma_cm reports by events with an errno or with a reason code of InfiniBand's
// communication manager. These turn them into statuses that name the address:
//
//   UNAVAILABLE        try again later, or start what is missing
//   DEADLINE_EXCEEDED  nobody answered in the caller's time
//   ALREADY_EXISTS     the address is in use
//   NOT_FOUND          no RDMA device has, or reaches, the address
//
// Pure functions; thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_CM_STATUS_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_CM_STATUS_H_

#include <rdma/rdma_cma.h>

#include <string_view>

#include "absl/status/status.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// Reasons of a REJ message: IBTA vol. 1, 12.6.7.2, and the kernel's ib_cm.h.
inline constexpr int kRejectTimeout = 4;
inline constexpr int kRejectInvalidServiceId = 8;  // nobody listens
inline constexpr int kRejectStaleConnection = 10;
inline constexpr int kRejectByConsumer = 28;  // the peer's user said no

// How far an attempt to connect got.
enum class ConnectStage {
  kResolvingAddress,
  kResolvingRoute,
  kAwaitingAnswer,
};

// The attempt's time is over.
absl::Status ConnectTimedOut(ConnectStage stage, const SocketAddress& peer);

// An event that ends an attempt: ADDR_ERROR, ROUTE_ERROR, CONNECT_ERROR,
// UNREACHABLE, REJECTED, DEVICE_REMOVAL; `event_status` is
// rdma_cm_event.status.
absl::Status ConnectFailure(rdma_cm_event_type event, int event_status,
                            const SocketAddress& peer);

// Whether a REJECTED event carries the words of the peer's user.
bool IsRejectedByUser(int event_status);

// rdma_resolve_addr and rdma_resolve_route failed at once.
absl::Status ResolveError(std::string_view call, int error,
                          const SocketAddress& peer);

// rdma_bind_addr or rdma_listen failed. `is_local` (IsLocalAddress) tells an
// address of other hosts from one that is in use, which the kernel does not.
absl::Status ListenError(std::string_view call, int error,
                         const SocketAddress& address, bool is_local);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_CM_STATUS_H_
