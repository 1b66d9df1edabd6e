// The client's side of ShmConnectionManager: from an address to a connection.
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rdma_transport/software/shm/listener_names.h"
#include "rdma_transport/software/shm/shm_cm_id.h"
#include "rdma_transport/software/shm/shm_connection_manager.h"

namespace rdma::soft {
namespace {

// Longer ones, infinite ones among them, count as this.
constexpr int64_t kMaxConnectTimeoutNs =
    int64_t{365} * 24 * 3600 * 1'000'000'000;

// A listener whose backlog is full is tried again after this.
constexpr int64_t kBusyRetryNs = 1'000'000;

}  // namespace

absl::StatusOr<CmId*> ShmConnectionManager::Connect(
    const SocketAddress& address, ibv_qp* verbs_qp,
    const ConnectionParameters& parameters, absl::Duration timeout,
    void* context) {
  if (parameters.private_data.size() > kMaxConnectPrivateData) {
    return absl::InvalidArgumentError(absl::StrCat(
        "connect: private data of ", parameters.private_data.size(),
        " bytes; at most ", kMaxConnectPrivateData, " fit"));
  }
  QueuePair* const qp = FromVerbs(verbs_qp);
  {
    const auto lock = device_->LockQueues();
    if (qp->state == IBV_QPS_RESET) qp->Initialize();
    if (qp->state != IBV_QPS_INIT) {
      return absl::FailedPreconditionError("connect: the QP is in use");
    }
  }
  auto owner = std::make_unique<Id>();
  Id* const id = owner.get();
  id->context = context;
  id->state = Id::State::kConnecting;
  id->peer = address;
  id->local = address;
  if (address.is_any()) {
    id->local = *SocketAddress::FromNumeric(
        address.family() == AF_INET6 ? "::1" : "127.0.0.1", 0);
  }
  id->local.set_port(EphemeralPort(Random()));
  id->qp_num = qp->qp_num;
  id->parameters = parameters;
  id->connect_deadline_ns =
      device_->clock()->NowNanoseconds() +
      std::clamp<int64_t>(absl::ToInt64Nanoseconds(timeout), 0,
                          kMaxConnectTimeoutNs);
  ids_.emplace(id, std::move(owner));
  if (!IsAddressOfThisHost(address)) {
    FailConnect(id, absl::UnavailableError(absl::StrCat(
                        address.ToString(),
                        " is not on this host, and the software device reaches "
                        "this host only: use a device that has a link there, "
                        "such as mlx5_0, or rxe0 of `rdma link add`")));
    return id;
  }
  TryToConnect(id);
  return id;
}

void ShmConnectionManager::TryToConnect(Id* id) {
  switch (ConnectToListener(id->peer, &id->socket)) {
    case ConnectResult::kConnected:
      SendHello(id);
      return;
    case ConnectResult::kNobody:
      FailConnect(id, absl::UnavailableError(absl::StrCat(
                          "nothing listens on ", id->peer.ToString(),
                          ": start the server or check the port")));
      return;
    case ConnectResult::kBusy:
      SetDeadline(id,
                  std::min(id->connect_deadline_ns,
                           device_->clock()->NowNanoseconds() + kBusyRetryNs));
      return;
    case ConnectResult::kFailed:
      FailConnect(id, CmErrnoStatus("connect"));
      return;
  }
}

void ShmConnectionManager::SendHello(Id* id) {
  QueuePair* const qp = device_->FindQp(id->qp_num);
  if (qp == nullptr) {
    FailConnect(id, absl::CancelledError("connect: the QP was destroyed"));
    return;
  }
  // The name of a listener is anybody's who takes it first: nothing of ours is
  // sent before it is known whose this is.
  if (const absl::Status user = CheckPeersUser(*id); !user.ok()) {
    FailConnect(id, absl::PermissionDeniedError(
                        absl::StrCat("connecting to ", id->peer.ToString(),
                                     ": ", std::string(user.message()))));
    return;
  }
  absl::StatusOr<ShmLink::Local> segment = ShmLink::Local::Create(
      qp->qp_num, RingLinesFor(qp->max_send_wr()), qp->access());
  if (!segment.ok()) {
    FailConnect(id, segment.status());
    return;
  }
  const EncodedHandshake hello = EncodeSetup(
      HandshakeKind::kHello, MakeSetup(*qp, id->parameters, id->local));
  if (SendMessage(id->socket.get(), hello.data, hello.bytes,
                  {device_->segment().fd(), segment->segment.fd()}) !=
      SendResult::kSent) {
    FailConnect(id, absl::UnavailableError(absl::StrCat(
                        id->peer.ToString(), " closed the connection")));
    return;
  }
  segment->segment.CloseDescriptor();
  id->segment = *std::move(segment);
  id->state = Id::State::kHelloSent;
  if (!Watch(id, EPOLLIN)) {
    FailConnect(id, CmErrnoStatus("epoll_ctl"));
    return;
  }
  SetDeadline(id, id->connect_deadline_ns);
}

void ShmConnectionManager::OnAnswerReadable(Id* id) {
  ControlMessage message;
  switch (ReceiveMessage(id->socket.get(), &message)) {
    case ReceiveResult::kNone:
      return;
    case ReceiveResult::kClosed:
      FailConnect(id, absl::UnavailableError(absl::StrCat(
                          id->peer.ToString(),
                          " closed the connection before it answered")));
      return;
    case ReceiveResult::kMessage:
      break;
  }
  const absl::StatusOr<HandshakeKind> kind = DecodeKind(message);
  if (kind.ok() && *kind == HandshakeKind::kAccept) {
    OnAccepted(id, message);
    return;
  }
  const absl::StatusOr<Rejection> rejection = DecodeRejection(message);
  if (!kind.ok() || *kind != HandshakeKind::kReject || !rejection.ok()) {
    FailConnect(id, absl::InternalError(absl::StrCat(
                        id->peer.ToString(), " answered with no handshake")));
    return;
  }
  FailConnect(id, absl::UnavailableError(absl::StrCat(
                      id->peer.ToString(),
                      " refused the connection: ", rejection->reason)));
  events_.back().rejected = rejection->by_user;
  events_.back().private_data = rejection->reason;
}

void ShmConnectionManager::OnAccepted(Id* id, const ControlMessage& message) {
  absl::StatusOr<HandshakeSetup> setup = DecodeSetup(message);
  if (!setup.ok()) {
    FailConnect(id, absl::FailedPreconditionError(
                        absl::StrCat(id->peer.ToString(), ": ",
                                     std::string(setup.status().message()))));
    return;
  }
  absl::StatusOr<ShmLink::Peer> peer = MapPeer(*setup, message);
  if (!peer.ok()) {
    FailConnect(id, peer.status());
    return;
  }
  const auto lock = device_->LockQueues();
  QueuePair* const qp = device_->FindQp(id->qp_num);
  if (qp == nullptr || qp->state != IBV_QPS_INIT) {
    FailConnect(id, absl::CancelledError(
                        "connect: the QP was destroyed or used meanwhile"));
    return;
  }
  const absl::Status established = Establish(id, qp, *setup, *std::move(peer));
  if (!established.ok()) {
    FailConnect(id, established);
    return;
  }
  CmEvent event;
  event.type = CmEvent::Type::kEstablished;
  event.id = id;
  event.private_data = std::move(setup->private_data);
  SetOfferedReads(*setup, &event);
  PushEvent(std::move(event));
}

void ShmConnectionManager::FailConnect(Id* id, absl::Status status) {
  Unwatch(id);
  ClearDeadline(id);
  if (id->link != nullptr) id->link->HangUp();
  id->socket.reset();
  id->segment.reset();
  id->state = Id::State::kClosed;
  CmEvent event;
  event.type = CmEvent::Type::kConnectFailed;
  event.id = id;
  event.status = std::move(status);
  PushEvent(std::move(event));
}

}  // namespace rdma::soft
