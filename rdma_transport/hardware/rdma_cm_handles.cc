#include "rdma_transport/hardware/rdma_cm_handles.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

SocketAddress Copy(const sockaddr* address) {
  SocketAddress copy;
  copy.storage.ss_family = address->sa_family;
  if (address->sa_family == AF_INET || address->sa_family == AF_INET6) {
    std::memcpy(&copy.storage, address, copy.length());
  }
  return copy;
}

void SetOption(rdma_cm_id* id, int option, void* value, size_t bytes) {
  if (rdma_set_option(id, RDMA_OPTION_ID, option, value, bytes) == 0) return;
  rpc::Log(rpc::LogLevel::kDebug,
           absl::StrCat("rdma_set_option ", option, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<UniqueEventChannel> CreateEventChannel() {
  errno = 0;
  UniqueEventChannel channel(rdma_create_event_channel());
  if (channel == nullptr) {
    if (errno == ENODEV || errno == ENOENT || errno == 0) {
      return absl::UnavailableError(
          "rdma_create_event_channel: this system has no rdma_cm, or no RDMA "
          "device: `modprobe rdma_ucm`, in a container pass in "
          "/dev/infiniband/rdma_cm, or choose the connection set-up by TCP");
    }
    return VerbsError("rdma_create_event_channel", errno,
                      "/dev/infiniband/rdma_cm");
  }
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return VerbsError("fcntl", errno, "rdma_cm's event channel");
  }
  return channel;
}

absl::StatusOr<UniqueCmId> CreateCmId(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) {
    return VerbsError("rdma_create_id", errno);
  }
  return UniqueCmId(id);
}

std::optional<ReceivedCmEvent> ReceiveCmEvent(rdma_event_channel* channel) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) {
    if (errno != EAGAIN && errno != EINTR) {
      static rpc::LogLimiter limiter(absl::Seconds(10));
      if (limiter.Allow()) {
        rpc::Log(rpc::LogLevel::kError,
                 VerbsError("rdma_get_cm_event", errno).ToString());
      }
    }
    return std::nullopt;
  }
  const rdma_conn_param& connection = event->param.conn;
  ReceivedCmEvent received = {
      .type = event->event,
      .status = event->status,
      .id = event->id,
      .listener = event->listen_id,
      .responder_resources = connection.responder_resources,
      .initiator_depth = connection.initiator_depth,
      .private_data = {},
  };
  if (connection.private_data != nullptr) {
    received.private_data.assign(
        static_cast<const char*>(connection.private_data),
        connection.private_data_len);
  }
  rdma_ack_cm_event(event);
  return received;
}

SocketAddress LocalAddressOf(rdma_cm_id* id) {
  return Copy(rdma_get_local_addr(id));
}

SocketAddress PeerAddressOf(rdma_cm_id* id) {
  return Copy(rdma_get_peer_addr(id));
}

void SetCmIdOption(rdma_cm_id* id, int option, uint8_t value) {
  SetOption(id, option, &value, sizeof(value));
}

void SetCmIdOption(rdma_cm_id* id, int option, int value) {
  SetOption(id, option, &value, sizeof(value));
}

}  // namespace rdma
