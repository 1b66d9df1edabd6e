// The connecting side of the TCP connection manager.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/qp_setup.h"
#include "rdma_transport/hardware/tcp_cm_id.h"
#include "rdma_transport/hardware/tcp_connection_manager.h"
#include "rdma_transport/hardware/tcp_qp.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {

absl::StatusOr<CmId*> TcpConnectionManager::Connect(
    const SocketAddress& address, ibv_qp* qp,
    const ConnectionParameters& parameters, absl::Duration timeout,
    void* context) {
  if (absl::Status status = CheckPrivateData(parameters.private_data.size(),
                                             kMaxConnectPrivateData);
      !status.ok()) {
    return status;
  }
  absl::StatusOr<UniqueFd> socket = CreateTcpSocket(address.family());
  if (!socket.ok()) return socket.status();
  const bool refused =
      connect(socket->get(), address.get(), address.length()) != 0 &&
      errno != EINPROGRESS;
  const int error = errno;
  Id* const id = Add(*std::move(socket), context);
  id->peer = address;
  id->qp = qp;
  id->parameters = Clamp(parameters, device_->attributes());
  if (refused) {
    // Reported like a refusal that takes its time.
    id->state = Id::State::kFailing;
    id->failure = TcpConnectError(error, address);
    deadlines_->Set(id, absl::ZeroDuration());
    return id;
  }
  if (!Watch(id, EPOLLOUT)) {
    const absl::Status status = VerbsError("epoll_ctl", errno);
    Destroy(id);
    return status;
  }
  id->state = Id::State::kConnectingTcp;
  deadlines_->Set(id, timeout);
  return id;
}

std::optional<CmEvent> TcpConnectionManager::OnTcpConnected(Id* id) {
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(id->socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return FailConnect(id, TcpConnectError(error, id->peer));
  if (absl::Status status = SendRequest(id); !status.ok()) {
    return FailConnect(id, std::move(status));
  }
  id->state = Id::State::kAwaitingAnswer;
  return std::nullopt;
}

absl::Status TcpConnectionManager::SendRequest(Id* id) {
  absl::StatusOr<LocalPort> port =
      ChooseLocalPort(device_, options_, id->local_address());
  if (!port.ok()) return port.status();
  id->port = *port;
  id->own = DescribeQp(SetupMessage::Kind::kRequest, *id->qp, RandomPsn(),
                       id->port, id->parameters);
  if (!Watch(id, EPOLLIN)) return VerbsError("epoll_ctl", errno);
  return SendMessage(id->socket.get(), id->own);
}

std::optional<CmEvent> TcpConnectionManager::OnAnswer(Id* id) {
  absl::StatusOr<std::optional<SetupMessage>> answer =
      id->reader.Read(id->socket.get());
  if (!answer.ok()) {
    return FailConnect(
        id, absl::UnavailableError(absl::StrCat(
                "the server at ", id->peer.ToString(),
                " gave no answer: ", std::string(answer.status().message()))));
  }
  if (!answer->has_value()) return std::nullopt;
  if ((*answer)->kind == SetupMessage::Kind::kReject) {
    CmEvent event = FailConnect(id, absl::UnavailableError(absl::StrCat(
                                        "the server at ", id->peer.ToString(),
                                        " rejected the connection")));
    event.rejected = true;
    event.private_data = std::move((*answer)->private_data);
    return event;
  }
  if ((*answer)->kind != SetupMessage::Kind::kAccept) {
    return FailConnect(
        id, absl::UnavailableError(absl::StrCat(
                "the server at ", id->peer.ToString(),
                " answered with another message than accept or reject")));
  }
  return OnAccepted(id, **answer);
}

CmEvent TcpConnectionManager::OnAccepted(Id* id, const SetupMessage& answer) {
  absl::Status status =
      BringUpQp(device_, id->qp, id->port, id->parameters, id->own, answer);
  if (status.ok()) {
    SetupMessage ready;
    ready.kind = SetupMessage::Kind::kReady;
    status = SendMessage(id->socket.get(), ready);
  }
  if (!status.ok()) return FailConnect(id, std::move(status));
  deadlines_->Clear(id);
  id->state = Id::State::kConnected;
  CmEvent event;
  event.type = CmEvent::Type::kEstablished;
  event.id = id;
  event.private_data = answer.private_data;
  event.responder_resources = answer.responder_resources;
  event.initiator_depth = answer.initiator_depth;
  return event;
}

// The socket is closed for both directions, so that the server hears of it.
CmEvent TcpConnectionManager::FailConnect(Id* id, absl::Status status) {
  deadlines_->Clear(id);
  Unwatch(id);
  shutdown(id->socket.get(), SHUT_RDWR);
  id->state = Id::State::kClosed;
  CmEvent event;
  event.type = CmEvent::Type::kConnectFailed;
  event.id = id;
  event.status = std::move(status);
  return event;
}

}  // namespace rdma
