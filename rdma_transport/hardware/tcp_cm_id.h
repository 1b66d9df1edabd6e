// An id of the TCP connection manager; tcp_connection_manager's own.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_CM_ID_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_CM_ID_H_

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <utility>

#include "rdma_transport/hardware/local_port.h"
#include "rdma_transport/hardware/setup_message.h"
#include "rdma_transport/hardware/tcp_connection_manager.h"
#include "rdma_transport/hardware/tcp_socket.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

class TcpConnectionManager::Id final : public CmId {
 public:
  enum class State {
    kListening,
    // Connecting.
    kConnectingTcp,
    kAwaitingAnswer,
    kFailing,  // `failure` is to be reported
    // Accepting.
    kHalfOpen,   // no request yet: the user does not know of it
    kRequested,  // the user's to answer
    kAccepted,
    // Both.
    kConnected,
    kPeerGone,  // reported as disconnected; the QP is still to be flushed
    kClosed,    // nothing more is to be said of it
  };

  explicit Id(UniqueFd socket) : socket(std::move(socket)) {}
  // The peer is told, also where a forked process has the socket, too.
  ~Id() override { shutdown(socket.get(), SHUT_RDWR); }

  SocketAddress local_address() const override {
    return LocalAddressOf(socket.get());
  }
  SocketAddress peer_address() const override { return peer; }

  UniqueFd socket;
  State state = State::kClosed;
  bool watched = false;
  SocketAddress peer;
  ibv_qp* qp = nullptr;  // the user's; null once it is disconnected
  ConnectionParameters parameters;
  LocalPort port;
  SetupMessage own;      // the request, once it is sent
  SetupMessage request;  // the peer's, when accepting
  MessageReader reader;
  absl::Status failure;
  Id* listener = nullptr;  // of a half-open one
  std::optional<std::list<Id*>::iterator> half_open;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_TCP_CM_ID_H_
