// The accepting side of the TCP connection manager.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/qp_setup.h"
#include "rdma_transport/hardware/tcp_cm_id.h"
#include "rdma_transport/hardware/tcp_connection_manager.h"
#include "rdma_transport/hardware/tcp_qp.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

// A client sends its request with the first packet that it may; these are for
// those that never do.
constexpr absl::Duration kRequestTimeout = absl::Seconds(5);
constexpr size_t kMaxHalfOpen = 256;

}  // namespace

absl::StatusOr<CmId*> TcpConnectionManager::Listen(const SocketAddress& address,
                                                   int backlog, void* context) {
  absl::StatusOr<UniqueFd> socket = ListenTcp(address, backlog);
  if (!socket.ok()) return socket.status();
  Id* const id = Add(*std::move(socket), context);
  if (!Watch(id, EPOLLIN)) {
    const absl::Status status = VerbsError("epoll_ctl", errno);
    Destroy(id);
    return status;
  }
  id->state = Id::State::kListening;
  return id;
}

void TcpConnectionManager::OnListenerReady(Id* listener) {
  UniqueFd socket = TakeOneFromBacklog(listener);
  if (socket) AddHalfOpen(listener, std::move(socket));
}

UniqueFd TcpConnectionManager::TakeOneFromBacklog(Id* listener) {
  constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  const int fd = listener->socket.get();
  UniqueFd socket(accept4(fd, nullptr, nullptr, kFlags));
  if (!socket && (errno == EMFILE || errno == ENFILE) && spare_) {
    // Refused by closing it, which is better than leaving it to wait.
    spare_.reset();
    UniqueFd(accept4(fd, nullptr, nullptr, kFlags)).reset();
    spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return socket;
}

void TcpConnectionManager::AddHalfOpen(Id* listener, UniqueFd socket) {
  if (half_open_.size() == kMaxHalfOpen) Destroy(half_open_.front());
  SetKeepalive(socket.get());
  Id* const id = Add(std::move(socket), nullptr);
  id->state = Id::State::kHalfOpen;
  id->listener = listener;
  id->peer = PeerAddressOf(id->socket.get());
  id->half_open = half_open_.insert(half_open_.end(), id);
  deadlines_->Set(id, kRequestTimeout);
  if (!Watch(id, EPOLLIN)) Destroy(id);
}

void TcpConnectionManager::DestroyHalfOpenOf(const Id* listener) {
  std::vector<Id*> orphans;
  std::copy_if(half_open_.begin(), half_open_.end(),
               std::back_inserter(orphans),
               [listener](const Id* id) { return id->listener == listener; });
  for (Id* const id : orphans) Destroy(id);
}

std::optional<CmEvent> TcpConnectionManager::OnRequest(Id* id, bool last_look) {
  absl::StatusOr<std::optional<SetupMessage>> request =
      id->reader.Read(id->socket.get());
  const bool is_there = request.ok() && request->has_value();
  if (request.ok() && !is_there && !last_look) return std::nullopt;
  if (!is_there || (*request)->kind != SetupMessage::Kind::kRequest) {
    Destroy(id);  // no client of ours
    return std::nullopt;
  }
  deadlines_->Clear(id);
  half_open_.erase(*id->half_open);
  id->half_open.reset();
  Unwatch(id);
  id->state = Id::State::kRequested;
  id->request = **std::move(request);
  CmEvent event;
  event.type = CmEvent::Type::kConnectRequest;
  event.id = id;
  event.listener = std::exchange(id->listener, nullptr);
  event.private_data = id->request.private_data;
  event.responder_resources = id->request.responder_resources;
  event.initiator_depth = id->request.initiator_depth;
  return event;
}

absl::Status TcpConnectionManager::Accept(
    CmId* cm_id, ibv_qp* qp, const ConnectionParameters& parameters) {
  auto* const id = static_cast<Id*>(cm_id);
  if (absl::Status status = CheckPrivateData(parameters.private_data.size(),
                                             kMaxAcceptPrivateData);
      !status.ok()) {
    return status;
  }
  if (id->state != Id::State::kRequested) {
    return absl::FailedPreconditionError("nobody waits for this id's answer");
  }
  absl::StatusOr<LocalPort> port =
      ChooseLocalPort(device_, options_, id->local_address());
  if (!port.ok()) return port.status();
  id->port = *port;
  id->qp = qp;
  id->parameters = Clamp(parameters, device_->attributes());
  id->own = DescribeQp(SetupMessage::Kind::kAccept, *qp, RandomPsn(), id->port,
                       id->parameters);
  // In RTR before the peer hears of it: it may send at once.
  if (absl::Status status = BringUpQp(device_, qp, id->port, id->parameters,
                                      id->own, id->request);
      !status.ok()) {
    return status;
  }
  if (!Watch(id, EPOLLIN)) return VerbsError("epoll_ctl", errno);
  if (absl::Status status = SendMessage(id->socket.get(), id->own);
      !status.ok()) {
    return status;
  }
  id->state = Id::State::kAccepted;
  return absl::OkStatus();
}

absl::Status TcpConnectionManager::Reject(CmId* cm_id,
                                          std::string_view reason) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kRequested) {
    return absl::FailedPreconditionError("nobody waits for this id's answer");
  }
  SetupMessage message;
  message.kind = SetupMessage::Kind::kReject;
  message.private_data = std::string(reason.substr(0, kMaxRejectPrivateData));
  id->state = Id::State::kClosed;
  return SendMessage(id->socket.get(), message);
}

// The id of a request is not watched: nothing of it is left here.
absl::StatusOr<std::unique_ptr<CmId>> TcpConnectionManager::Release(
    CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kRequested) {
    return absl::FailedPreconditionError("nobody waits for this id's answer");
  }
  Unwatch(id);  // where that failed before
  if (id->watched) return VerbsError("epoll_ctl", errno);
  return std::move(ids_.extract(cm_id).mapped());
}

absl::StatusOr<CmId*> TcpConnectionManager::Adopt(
    std::unique_ptr<CmId> released) {
  std::unique_ptr<Id> owned(static_cast<Id*>(released.release()));
  Id* const id = owned.get();
  ids_.emplace(id, std::move(owned));
  return id;
}

std::optional<CmEvent> TcpConnectionManager::OnClientReady(Id* id) {
  absl::StatusOr<std::optional<SetupMessage>> ready =
      id->reader.Read(id->socket.get());
  if (ready.ok() && !ready->has_value()) return std::nullopt;
  if (!ready.ok() || (*ready)->kind != SetupMessage::Kind::kReady) {
    return FailConnect(
        id, absl::UnavailableError(absl::StrCat(
                "the client ", id->peer.ToString(),
                " gave up the connection before it was ready: ",
                ready.ok() ? "it sent another message"
                           : std::string(ready.status().message()))));
  }
  id->state = Id::State::kConnected;
  CmEvent event;
  event.type = CmEvent::Type::kEstablished;
  event.id = id;
  return event;
}

}  // namespace rdma
