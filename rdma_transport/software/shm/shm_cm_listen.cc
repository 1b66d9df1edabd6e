// The server's side of ShmConnectionManager: from a listener to an accepted
// connection.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/software/shm/listener_names.h"
#include "rdma_transport/software/shm/shm_cm_id.h"
#include "rdma_transport/software/shm/shm_connection_manager.h"

namespace rdma::soft {
namespace {

constexpr int kAcceptsPerTurn = 64;

// Sockets that were accepted and sent no handshake: so many, and for so long.
constexpr size_t kMaxHalfOpen = 256;
constexpr int64_t kHandshakeLimitNs = 5'000'000'000;

}  // namespace

absl::StatusOr<CmId*> ShmConnectionManager::Listen(const SocketAddress& address,
                                                   int backlog, void* context) {
  absl::StatusOr<BoundSocket> bound =
      BindListener(address, backlog, [this] { return Random(); });
  if (!bound.ok()) return bound.status();
  auto owner = std::make_unique<Id>();
  Id* const id = owner.get();
  id->context = context;
  id->state = Id::State::kListening;
  id->local = bound->address;
  id->socket = std::move(bound->socket);
  if (!Watch(id, EPOLLIN)) return CmErrnoStatus("epoll_ctl");
  ids_.emplace(id, std::move(owner));
  return id;
}

void ShmConnectionManager::OnListenerReadable(Id* listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd socket(accept4(listener->socket.get(), nullptr, nullptr,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      AddHalfOpen(listener, std::move(socket));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE) return;
    // Without a descriptor it cannot even be refused, and would be readable for
    // ever: give one up for that.
    log_.Write(
        "no descriptors are left: a connection was refused; raise "
        "RLIMIT_NOFILE (ulimit -n)");
    spare_.reset();
    const UniqueFd refused(
        accept4(listener->socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
    return;
  }
}

void ShmConnectionManager::AddHalfOpen(Id* listener, UniqueFd socket) {
  if (half_open_.size() == kMaxHalfOpen) EvictHalfOpen();
  auto owner = std::make_unique<Id>();
  Id* const id = owner.get();
  id->state = Id::State::kHalfOpen;
  id->listener = listener;
  id->local = listener->local;
  id->socket = std::move(socket);
  if (!Watch(id, EPOLLIN)) return;
  half_open_.push_back(id);
  id->half_open = std::prev(half_open_.end());
  ids_.emplace(id, std::move(owner));
  SetDeadline(id, device_->clock()->NowNanoseconds() + kHandshakeLimitNs);
  OnHelloReadable(id);  // it is there already, as a rule
}

void ShmConnectionManager::EvictHalfOpen() {
  Drop(half_open_.front(), "too many clients sent no handshake");
}

void ShmConnectionManager::Drop(Id* id, std::string_view why) {
  log_.Write(absl::StrCat(std::string(why), " on ", id->local.ToString(),
                          ": its connection was closed"));
  Destroy(id);
}

void ShmConnectionManager::OnHelloReadable(Id* id) {
  ControlMessage message;
  switch (ReceiveMessage(id->socket.get(), &message)) {
    case ReceiveResult::kNone:
      return;
    case ReceiveResult::kClosed:
      Destroy(id);  // somebody looked who listens here
      return;
    case ReceiveResult::kMessage:
      break;
  }
  const absl::StatusOr<HandshakeKind> kind = DecodeKind(message);
  if (!kind.ok() || *kind != HandshakeKind::kHello) {
    Drop(id, absl::StrCat("a client sent ",
                          kind.ok() ? "no hello"
                                    : std::string(kind.status().message())));
    return;
  }
  absl::StatusOr<HandshakeSetup> setup = DecodeSetup(message);
  if (absl::IsFailedPrecondition(setup.status())) {
    log_.Write(absl::StrCat("refused a client: ",
                            std::string(setup.status().message())));
    RejectAndForget(id, std::string(setup.status().message()));
    return;
  }
  if (!setup.ok()) {
    Drop(id,
         absl::StrCat("a client sent ", std::string(setup.status().message())));
    return;
  }
  if (const absl::Status user = CheckPeersUser(*id); !user.ok()) {
    const std::string reason =
        absl::StrCat("the server takes connections of its own user only: ",
                     std::string(user.message()));
    log_.Write(absl::StrCat("refused a client: ", reason));
    RejectAndForget(id, reason);
    return;
  }
  absl::StatusOr<ShmLink::Peer> peer = MapPeer(*setup, message);
  if (!peer.ok()) {
    Drop(id, absl::StrCat("a client's memory is not usable (",
                          std::string(peer.status().message()), ")"));
    return;
  }

  Unwatch(id);
  ClearDeadline(id);
  half_open_.erase(*std::exchange(id->half_open, std::nullopt));
  id->state = Id::State::kRequested;
  id->peer = setup->address;
  id->hello = *std::move(setup);
  id->hello_peer = *std::move(peer);
  CmEvent event;
  event.type = CmEvent::Type::kConnectRequest;
  event.id = id;
  event.listener = id->listener;
  event.private_data = id->hello.private_data;
  SetOfferedReads(id->hello, &event);
  PushEvent(std::move(event));
}

void ShmConnectionManager::RejectAndForget(Id* id, const std::string& reason) {
  const EncodedHandshake answer =
      EncodeRejection({.by_user = false, .reason = reason});
  SendMessage(id->socket.get(), answer.data, answer.bytes, {});
  Destroy(id);
}

absl::Status ShmConnectionManager::Accept(
    CmId* cm_id, ibv_qp* verbs_qp, const ConnectionParameters& parameters) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kRequested) {
    return absl::FailedPreconditionError("accept: not a connection request");
  }
  if (parameters.private_data.size() > kMaxAcceptPrivateData) {
    return absl::InvalidArgumentError(
        absl::StrCat("accept: private data of ", parameters.private_data.size(),
                     " bytes; at most ", kMaxAcceptPrivateData, " fit"));
  }
  QueuePair* const qp = FromVerbs(verbs_qp);
  const auto lock = device_->LockQueues();
  if (qp->state == IBV_QPS_RESET) qp->Initialize();
  if (qp->state != IBV_QPS_INIT) {
    return absl::FailedPreconditionError("accept: the QP is in use");
  }
  absl::StatusOr<ShmLink::Local> segment = ShmLink::Local::Create(
      qp->qp_num, RingLinesFor(qp->max_send_wr()), qp->access());
  if (!segment.ok()) return segment.status();
  id->parameters = parameters;
  id->qp_num = qp->qp_num;
  const EncodedHandshake answer = EncodeSetup(
      HandshakeKind::kAccept, MakeSetup(*qp, parameters, id->local));
  const int segment_fd = segment->segment.fd();
  if (SendMessage(id->socket.get(), answer.data, answer.bytes,
                  {device_->segment().fd(), segment_fd}) != SendResult::kSent) {
    id->state = Id::State::kClosed;
    return absl::UnavailableError("accept: the client is gone");
  }
  segment->segment.CloseDescriptor();
  id->segment = *std::move(segment);
  absl::Status established =
      Establish(id, qp, id->hello, *std::move(id->hello_peer));
  if (!established.ok()) return established;

  // The client may have gone meanwhile: that shows as a disconnect.
  CmEvent event;
  event.type = CmEvent::Type::kEstablished;
  event.id = id;
  SetOfferedReads(id->hello, &event);
  PushEvent(std::move(event));
  return absl::OkStatus();
}

// The id of a request is not watched and has no deadline: only its listener, of
// which it is told, is left here.
absl::StatusOr<std::unique_ptr<CmId>> ShmConnectionManager::Release(
    CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kRequested) {
    return absl::FailedPreconditionError("release: not a connection request");
  }
  id->listener = nullptr;
  return std::move(ids_.extract(id).mapped());
}

absl::StatusOr<CmId*> ShmConnectionManager::Adopt(
    std::unique_ptr<CmId> released) {
  std::unique_ptr<Id> owned(static_cast<Id*>(released.release()));
  Id* const id = owned.get();
  ids_.emplace(id, std::move(owned));
  return id;
}

absl::Status ShmConnectionManager::Reject(CmId* cm_id,
                                          std::string_view reason) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kRequested) {
    return absl::FailedPreconditionError("reject: not a connection request");
  }
  if (reason.size() > kMaxRejectPrivateData) {
    return absl::InvalidArgumentError(
        absl::StrCat("reject: a reason of ", reason.size(), " bytes; at most ",
                     kMaxRejectPrivateData, " fit"));
  }
  const EncodedHandshake answer =
      EncodeRejection({.by_user = true, .reason = std::string(reason)});
  SendMessage(id->socket.get(), answer.data, answer.bytes, {});
  id->socket.reset();
  id->state = Id::State::kClosed;
  return absl::OkStatus();
}

}  // namespace rdma::soft
