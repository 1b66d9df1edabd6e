#include "rdma_transport/hardware/route.h"

#include <infiniband/verbs.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "rdma_transport/hardware/cm_status.h"
#include "rdma_transport/hardware/device_list.h"
#include "rdma_transport/hardware/rdma_cm_handles.h"
#include "rdma_transport/provider/local_address.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

// The longest wait that poll(2) and rdma_resolve_addr(3) are asked for.
constexpr absl::Duration kLongestWait = absl::Minutes(10);

bool HasActivePort(ibv_device* device) {
  ibv_context* const context = ibv_open_device(device);
  if (context == nullptr) return false;
  bool active = false;
  ibv_device_attr attributes;
  if (ibv_query_device(context, &attributes) == 0) {
    for (uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
      ibv_port_attr port_attributes;
      active =
          active || (ibv_query_port(context, port, &port_attributes) == 0 &&
                     port_attributes.state == IBV_PORT_ACTIVE);
    }
  }
  ibv_close_device(context);
  return active;
}

absl::StatusOr<std::string> DeviceOf(const rdma_cm_id& id,
                                     const SocketAddress& address) {
  if (id.verbs != nullptr) {
    return std::string(ibv_get_device_name(id.verbs->device));
  }
  return ConnectFailure(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, address);
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

// OK once `wanted` has come, the end of `stage`.
absl::Status Await(rdma_event_channel* channel, rdma_cm_event_type wanted,
                   ConnectStage stage, const SocketAddress& address,
                   absl::Time deadline) {
  for (;;) {
    if (std::optional<ReceivedCmEvent> event = ReceiveCmEvent(channel)) {
      if (event->type == wanted) return absl::OkStatus();
      return ConnectFailure(event->type, event->status, address);
    }
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return ConnectTimedOut(stage, address);
    pollfd descriptor = {.fd = channel->fd, .events = POLLIN, .revents = 0};
    poll(&descriptor, 1, Milliseconds(left) + 1);
  }
}

// Both steps that come before connecting: an address may resolve to a device
// that has no route to it (127.0.0.1 does so where lo has no RDMA device).
absl::StatusOr<std::string> FindForConnecting(rdma_event_channel* channel,
                                              rdma_cm_id* id,
                                              SocketAddress address,
                                              absl::Duration timeout) {
  const absl::Duration wait =
      std::clamp(timeout, absl::Milliseconds(1), kLongestWait);
  const absl::Time deadline = absl::Now() + wait;
  if (rdma_resolve_addr(id, nullptr,
                        reinterpret_cast<sockaddr*>(&address.storage),
                        Milliseconds(wait)) != 0) {
    return ResolveError("rdma_resolve_addr", errno, address);
  }
  if (absl::Status status =
          Await(channel, RDMA_CM_EVENT_ADDR_RESOLVED,
                ConnectStage::kResolvingAddress, address, deadline);
      !status.ok()) {
    return status;
  }
  if (rdma_resolve_route(id, Milliseconds(wait)) != 0) {
    return ResolveError("rdma_resolve_route", errno, address);
  }
  if (absl::Status status =
          Await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED,
                ConnectStage::kResolvingRoute, address, deadline);
      !status.ok()) {
    return status;
  }
  return DeviceOf(*id, address);
}

// By an id that is bound, to any port, and does not listen.
absl::StatusOr<std::string> FindForListening(rdma_cm_id* id,
                                             const SocketAddress& address) {
  SocketAddress any_port = address;
  any_port.set_port(0);
  if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any_port.storage)) != 0) {
    const int error = errno;
    return ListenError("rdma_bind_addr", error, address,
                       IsLocalAddress(address));
  }
  return DeviceOf(*id, address);
}

}  // namespace

absl::StatusOr<std::string> FindActiveDevice() {
  const DeviceList devices = DeviceList::Get();
  const std::vector<std::string> names = devices.names();
  for (const std::string& name : names) {
    if (HasActivePort(devices.Find(name))) return name;
  }
  if (names.empty()) return devices.NotFound("auto");
  return absl::NotFoundError(absl::StrCat(
      "no port of ", absl::StrJoin(names, ", "),
      " is active: bring the link up (`ip link`, `rdma link`; InfiniBand "
      "needs a subnet manager)"));
}

absl::StatusOr<std::string> FindDeviceByRoute(const SocketAddress& address,
                                              AddressUse use,
                                              absl::Duration timeout) {
  if (use == AddressUse::kListen && address.is_any()) return FindActiveDevice();
  absl::StatusOr<UniqueEventChannel> channel = CreateEventChannel();
  if (!channel.ok()) return channel.status();
  absl::StatusOr<UniqueCmId> id = CreateCmId(channel->get());
  if (!id.ok()) return id.status();
  return use == AddressUse::kListen
             ? FindForListening(id->get(), address)
             : FindForConnecting(channel->get(), id->get(), address, timeout);
}

}  // namespace rdma
