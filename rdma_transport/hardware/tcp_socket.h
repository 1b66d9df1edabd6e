// The TCP connections of the TCP connection manager: made, and read and written
// in whole set-up messages, without blocking.
//
// Thread rule: one thread at a time for a socket.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_SOCKET_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_SOCKET_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rdma_transport/hardware/setup_message.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

// A socket that does not block, whose peer is found dead by keepalive within
// half a minute.
absl::StatusOr<UniqueFd> CreateTcpSocket(int family);
// What accept4(2) gives does not inherit all of it.
void SetKeepalive(int fd);

// Binds and listens. ALREADY_EXISTS: in use. NOT_FOUND: no address of this
// host.
absl::StatusOr<UniqueFd> ListenTcp(const SocketAddress& address, int backlog);

// Of family AF_UNSPEC where there is none.
SocketAddress LocalAddressOf(int fd);
SocketAddress PeerAddressOf(int fd);

// Why connecting failed, by errno.
absl::Status TcpConnectError(int error, const SocketAddress& peer);

// Sends a message whole: one is shorter than any socket's buffer, and no socket
// gets more than two. UNAVAILABLE: the peer is gone.
absl::Status SendMessage(int fd, const SetupMessage& message);

// Collects the bytes of one message after the other.
class MessageReader {
 public:
  // Reads what is there and not a byte beyond the message. Nothing: more must
  // come. UNAVAILABLE: the peer closed the connection, or it broke.
  // INVALID_ARGUMENT: what came is no message.
  absl::StatusOr<std::optional<SetupMessage>> Read(int fd);

 private:
  SetupMessageBytes bytes_;
  size_t filled_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_SOCKET_H_
