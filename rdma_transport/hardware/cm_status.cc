#include "rdma_transport/hardware/cm_status.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

constexpr char kNoNeighbour[] =
    " does not answer ARP or neighbour discovery: check that the host is up "
    "and on this network";
constexpr char kNobodyListens[] =
    ": start the server, or check the port and that it uses the same device "
    "and connection set-up";

bool IsLoopback(const SocketAddress& address) {
  const std::string text = address.ToString();
  return absl::StartsWith(text, "127.") || absl::StartsWith(text, "[::1]");
}

absl::Status NoDevice(const SocketAddress& address) {
  if (IsLoopback(address)) {
    return absl::NotFoundError(absl::StrCat(
        "no RDMA device has the loopback address ", address.ToString(),
        ": use the address of the device's network interface, or the device "
        "'soft' within one host"));
  }
  return absl::NotFoundError(absl::StrCat(
      "no RDMA device is on the way to ", address.ToString(),
      ": `ip route get` names the network interface, `rdma link` the devices "
      "and theirs. Use an address of an RDMA network, or for soft-RoCE `rdma "
      "link add rxe0 type rxe netdev NETDEV`"));
}

absl::Status AddressFailure(int error, const SocketAddress& peer) {
  switch (error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
      return absl::UnavailableError(
          absl::StrCat(peer.ToString(), kNoNeighbour));
    case ENETUNREACH:
      return absl::UnavailableError(
          absl::StrCat("no route to ", peer.ToString(), ": see `ip route`"));
    case ENODEV:
    case EADDRNOTAVAIL:
      return NoDevice(peer);
    default:
      return absl::UnavailableError(absl::StrCat(
          "finding the way to ", peer.ToString(), ": ", strerror(error)));
  }
}

// InfiniBand gives a reason code, iWARP a negative errno.
absl::Status Rejected(int reason, const SocketAddress& peer) {
  switch (reason) {
    case kRejectByConsumer:
      return absl::UnavailableError(absl::StrCat(
          "the server at ", peer.ToString(), " rejected the connection"));
    case kRejectInvalidServiceId:
    case -ECONNREFUSED:
      return absl::UnavailableError(
          absl::StrCat("nothing listens at ", peer.ToString(), kNobodyListens));
    case kRejectStaleConnection:
      return absl::UnavailableError(absl::StrCat(
          peer.ToString(),
          " still remembers an old connection of this queue pair's number: "
          "try again"));
    case kRejectTimeout:
      return absl::UnavailableError(
          absl::StrCat("the server at ", peer.ToString(),
                       " gave up the connection while it was being made: it "
                       "may be overloaded, try again"));
    default:
      return absl::UnavailableError(absl::StrCat(
          "the system of ", peer.ToString(), " refused the connection, reason ",
          reason, " (IBTA vol. 1, 12.6.7.2): it may be out of queue pairs"));
  }
}

}  // namespace

absl::Status ConnectTimedOut(ConnectStage stage, const SocketAddress& peer) {
  switch (stage) {
    case ConnectStage::kResolvingAddress:
      return absl::DeadlineExceededError(
          absl::StrCat(peer.ToString(), kNoNeighbour));
    case ConnectStage::kResolvingRoute:
      return absl::DeadlineExceededError(
          absl::StrCat("no RDMA route to ", peer.ToString(),
                       " was found in time: check that a subnet manager runs"));
    case ConnectStage::kAwaitingAnswer:
      break;
  }
  return absl::DeadlineExceededError(absl::StrCat(
      peer.ToString(),
      " did not answer in time: its host may have no RDMA device at that "
      "address, UDP port 4791 may be filtered, or its process is stopped or "
      "too "
      "busy to accept connections"));
}

absl::Status ConnectFailure(rdma_cm_event_type event, int event_status,
                            const SocketAddress& peer) {
  const int error = std::abs(event_status);
  switch (event) {
    case RDMA_CM_EVENT_REJECTED:
      return Rejected(event_status, peer);
    case RDMA_CM_EVENT_ADDR_ERROR:
      return AddressFailure(error, peer);
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return absl::UnavailableError(
          absl::StrCat("no RDMA route to ", peer.ToString(), ": ",
                       strerror(error), "; check that a subnet manager runs"));
    case RDMA_CM_EVENT_UNREACHABLE:
      return absl::UnavailableError(absl::StrCat(
          peer.ToString(),
          " does not answer: its host may have no RDMA device at that address, "
          "or UDP port 4791 may be filtered"));
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return absl::UnavailableError(absl::StrCat(
          "the RDMA device on the way to ", peer.ToString(), " was removed"));
    default:
      return absl::UnavailableError(
          absl::StrCat("connecting to ", peer.ToString(), ": ",
                       rdma_event_str(event), ", status ", event_status));
  }
}

bool IsRejectedByUser(int event_status) {
  return event_status == kRejectByConsumer;
}

absl::Status ResolveError(std::string_view call, int error,
                          const SocketAddress& peer) {
  if (error == ENODEV || error == EADDRNOTAVAIL) return NoDevice(peer);
  if (error == ENETUNREACH || error == EHOSTUNREACH) {
    return AddressFailure(error, peer);
  }
  return VerbsError(call, error, peer.ToString());
}

absl::Status ListenError(std::string_view call, int error,
                         const SocketAddress& address, bool is_local) {
  // A wildcard that meets an address, or the other way round, is EADDRNOTAVAIL.
  if (error == EADDRINUSE || (error == EADDRNOTAVAIL && is_local)) {
    return absl::AlreadyExistsError(absl::StrCat(
        address.ToString(),
        " is in use by another RDMA listener (`rdma "
        "resource show cm_id` names its process): choose another port, or 0"));
  }
  if (!is_local) {
    return absl::NotFoundError(
        absl::StrCat(address.ToString(),
                     " is no address of this host: listen on one of its RDMA "
                     "devices' addresses, or on 0.0.0.0 or [::]"));
  }
  if (error == ENODEV) return NoDevice(address);
  if (error == EACCES) {
    return absl::PermissionDeniedError(
        absl::StrCat("listening on ", address.ToString(), ": ", strerror(error),
                     ": ports below 1024 need CAP_NET_BIND_SERVICE"));
  }
  return VerbsError(call, error, address.ToString());
}

}  // namespace rdma
