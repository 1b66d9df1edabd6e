#include "rdma_transport/hardware/tcp_socket.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

// Idle for 10 s, then 4 probes 5 s apart: 30 s.
constexpr int kKeepaliveIdleSeconds = 10;
constexpr int kKeepaliveIntervalSeconds = 5;
constexpr int kKeepaliveProbes = 4;

// Best effort: a socket works without any of them.
void SetOption(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

absl::Status TcpListenError(const char* call, int error,
                            const SocketAddress& address) {
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(
        absl::StrCat(address.ToString(),
                     " is in use (`ss -ltnp` names the process): choose "
                     "another port, or 0"));
  }
  if (error == EADDRNOTAVAIL) {
    return absl::NotFoundError(
        absl::StrCat(address.ToString(),
                     " is no address of this host: listen on one that is, or "
                     "on 0.0.0.0 or [::]"));
  }
  return VerbsError(call, error, address.ToString());
}

}  // namespace

absl::StatusOr<UniqueFd> CreateTcpSocket(int family) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return VerbsError("socket", errno);
  SetKeepalive(fd.get());
  return fd;
}

void SetKeepalive(int fd) {
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepaliveIdleSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepaliveIntervalSeconds);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepaliveProbes);
  // Messages are whole, and few.
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

absl::StatusOr<UniqueFd> ListenTcp(const SocketAddress& address, int backlog) {
  absl::StatusOr<UniqueFd> fd = CreateTcpSocket(address.family());
  if (!fd.ok()) return fd.status();
  // A server may come back although old connections are in TIME_WAIT.
  SetOption(fd->get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(fd->get(), address.get(), address.length()) != 0) {
    return TcpListenError("bind", errno, address);
  }
  if (listen(fd->get(), backlog) != 0) {
    return TcpListenError("listen", errno, address);
  }
  return fd;
}

SocketAddress LocalAddressOf(int fd) {
  SocketAddress address;
  socklen_t length = sizeof(address.storage);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &length);
  return address;
}

SocketAddress PeerAddressOf(int fd) {
  SocketAddress address;
  socklen_t length = sizeof(address.storage);
  getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &length);
  return address;
}

absl::Status TcpConnectError(int error, const SocketAddress& peer) {
  switch (error) {
    case ECONNREFUSED:
      return absl::UnavailableError(absl::StrCat(
          "nothing listens at ", peer.ToString(),
          ": start the server, or check the port and that it sets up its "
          "connections by TCP, too"));
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ETIMEDOUT:
      return absl::UnavailableError(
          absl::StrCat(peer.ToString(), ": ", strerror(error),
                       ": check that the host is up, and the way to it (`ip "
                       "route get`)"));
    default:
      break;
  }
  const absl::Status status = VerbsError("connect", error, peer.ToString());
  return error == EMFILE || error == ENFILE || error == ENOMEM
             ? status
             : absl::UnavailableError(status.message());
}

absl::Status SendMessage(int fd, const SetupMessage& message) {
  const SetupMessageBytes bytes = Encode(message);
  const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      PeerAddressOf(fd).ToString(), " went away while connecting: ",
      sent < 0 ? strerror(errno) : "it takes no more bytes"));
}

absl::StatusOr<std::optional<SetupMessage>> MessageReader::Read(int fd) {
  while (filled_ < bytes_.size()) {
    const ssize_t count =
        recv(fd, bytes_.data() + filled_, bytes_.size() - filled_, 0);
    if (count > 0) {
      filled_ += static_cast<size_t>(count);
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    return absl::UnavailableError(count == 0 ? "it closed the connection"
                                             : strerror(errno));
  }
  filled_ = 0;
  absl::StatusOr<SetupMessage> message = Decode(bytes_);
  if (!message.ok()) return message.status();
  return std::optional<SetupMessage>(*std::move(message));
}

}  // namespace rdma
