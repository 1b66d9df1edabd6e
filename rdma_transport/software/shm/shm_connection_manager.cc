#include "rdma_transport/software/shm/shm_connection_manager.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rdma_transport/software/engine/asymmetric_fence.h"
#include "rdma_transport/software/shm/listener_names.h"

namespace rdma::soft {
namespace {

constexpr int kEventsPerTurn = 64;
constexpr int kAcceptsPerTurn = 64;

// Sockets that were accepted and sent no handshake: so many, and for so long.
constexpr size_t kMaxHalfOpen = 256;
constexpr int64_t kHandshakeLimitNs = 5'000'000'000;

// Longer ones, infinite ones among them, count as this.
constexpr absl::Duration kMaxConnectTimeout = absl::Hours(24 * 365);

// A listener whose backlog is full is tried again after this.
constexpr int64_t kBusyRetryNs = 1'000'000;

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

// The peer's own values: its initiator depth bounds our responder resources,
// and the other way round.
void OfferReads(const HandshakeSetup& peer, CmEvent* event) {
  event->responder_resources = peer.responder_resources;
  event->initiator_depth = peer.initiator_depth;
}

absl::Status Errno(std::string_view call) {
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(call), ": ", std::strerror(errno)));
}

}  // namespace

class ShmConnectionManager::Id final : public CmId {
 public:
  enum class State {
    kListening,
    kConnecting,  // the listener's backlog is full
    kHelloSent,
    kHalfOpen,   // accepted; the hello has not come
    kRequested,  // the user was asked
    kConnected,
    kClosed,
  };

  SocketAddress local_address() const override { return local; }
  SocketAddress peer_address() const override { return peer; }

  // The socket, also once the link has it.
  int fd() const { return link != nullptr ? link->fd() : socket.get(); }

  State state = State::kClosed;
  SocketAddress local;
  SocketAddress peer;
  UniqueFd socket;
  bool watched = false;
  int64_t connect_deadline_ns = 0;
  std::optional<std::multimap<int64_t, Id*>::iterator> deadline;
  std::optional<std::list<Id*>::iterator> half_open;

  Id* listener = nullptr;
  uint32_t qp_num = 0;
  ConnectionParameters parameters;          // ours
  std::optional<ShmLink::Local> segment;    // client: sent with the hello
  HandshakeSetup hello;                     // server: the client's
  std::optional<ShmLink::Peer> hello_peer;  // server: the client's, mapped
  std::shared_ptr<ShmLink> link;
};

// --- Making and destroying ---------------------------------------------------

absl::StatusOr<std::unique_ptr<ShmConnectionManager>>
ShmConnectionManager::Create(EngineDevice* device, MappingCache* cache,
                             uint64_t seed) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return Errno("epoll_create1");
  UniqueFd counter(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!counter) return Errno("eventfd");
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return Errno("timerfd_create");
  std::unique_ptr<ShmConnectionManager> manager(
      new ShmConnectionManager(device, cache, seed, std::move(epoll),
                               std::move(counter), std::move(timer)));
  for (const UniqueFd* fd : {&manager->counter_, &manager->timer_}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = const_cast<UniqueFd*>(fd);
    if (epoll_ctl(manager->fd(), EPOLL_CTL_ADD, fd->get(), &event) != 0) {
      return Errno("epoll_ctl");
    }
  }
  return manager;
}

ShmConnectionManager::ShmConnectionManager(EngineDevice* device,
                                           MappingCache* cache, uint64_t seed,
                                           UniqueFd epoll, UniqueFd counter,
                                           UniqueFd timer)
    : device_(device),
      cache_(cache),
      random_(seed),
      epoll_(std::move(epoll)),
      counter_(std::move(counter)),
      timer_(std::move(timer)),
      spare_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      log_(device->clock()) {}

ShmConnectionManager::~ShmConnectionManager() {
  while (!ids_.empty()) Destroy(ids_.begin()->first);
}

void ShmConnectionManager::Destroy(CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  Unwatch(id);
  ClearDeadline(id);
  if (id->half_open) half_open_.erase(*id->half_open);
  if (id->link != nullptr) id->link->HangUp();
  if (id->state == Id::State::kListening) DestroyUntold(id);
  std::erase_if(events_, [id](const CmEvent& event) { return event.id == id; });
  ids_.erase(id);
}

// Clients of a listener that nobody told the user of go with it.
void ShmConnectionManager::DestroyUntold(Id* listener) {
  std::vector<Id*> untold;
  for (const CmEvent& event : events_) {
    if (event.listener == listener)
      untold.push_back(static_cast<Id*>(event.id));
  }
  for (const auto& [id, owner] : ids_) {
    if (id->listener != listener) continue;
    id->listener = nullptr;
    if (id->state == Id::State::kHalfOpen) untold.push_back(id);
  }
  for (Id* id : untold) Destroy(id);
}

// --- Events ------------------------------------------------------------------

std::optional<CmEvent> ShmConnectionManager::GetEvent() {
  if (events_.empty()) ServeDescriptors();
  if (events_.empty()) return std::nullopt;
  CmEvent event = std::move(events_.front());
  events_.pop_front();
  if (events_.empty()) {
    eventfd_t value;
    eventfd_read(counter_.get(), &value);
  }
  return event;
}

void ShmConnectionManager::PushEvent(CmEvent event) {
  if (events_.empty()) eventfd_write(counter_.get(), 1);
  events_.push_back(std::move(event));
}

void ShmConnectionManager::ServeDescriptors() {
  epoll_event events[kEventsPerTurn];
  const int count = epoll_wait(epoll_.get(), events, kEventsPerTurn, 0);
  for (int i = 0; i < count; ++i) {
    void* const tag = events[i].data.ptr;
    if (tag == &counter_) continue;
    if (tag == &timer_) {
      OnTimer();
      continue;
    }
    // An event of this batch may have ended an id that a later one names.
    auto* const id = static_cast<Id*>(tag);
    if (!ids_.contains(id)) continue;
    switch (id->state) {
      case Id::State::kListening:
        OnListenerReadable(id);
        break;
      case Id::State::kHalfOpen:
        OnHelloReadable(id);
        break;
      case Id::State::kHelloSent:
        OnAnswerReadable(id);
        break;
      case Id::State::kConnected:
        OnConnectionReadable(id);
        break;
      default:
        break;
    }
  }
}

bool ShmConnectionManager::Watch(Id* id, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = id;
  const int operation = id->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(epoll_.get(), operation, id->fd(), &event) != 0) return false;
  id->watched = true;
  return true;
}

void ShmConnectionManager::Unwatch(Id* id) {
  if (!std::exchange(id->watched, false)) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, id->fd(), nullptr);
}

void ShmConnectionManager::OnConnectionReadable(Id* id) {
  Unwatch(id);
  id->state = Id::State::kClosed;
  id->link->MarkHungUp();
  CmEvent event;
  event.type = CmEvent::Type::kDisconnected;
  event.id = id;
  PushEvent(std::move(event));
}

// --- Time --------------------------------------------------------------------

void ShmConnectionManager::SetDeadline(Id* id, int64_t deadline_ns) {
  ClearDeadline(id);
  id->deadline = deadlines_.emplace(deadline_ns, id);
  ArmTimer();
}

void ShmConnectionManager::ClearDeadline(Id* id) {
  if (!id->deadline) return;
  deadlines_.erase(*id->deadline);
  id->deadline.reset();
}

void ShmConnectionManager::ArmTimer() {
  if (deadlines_.empty()) return;
  const int64_t wait_ns = std::max<int64_t>(
      deadlines_.begin()->first - device_->clock()->NowNanoseconds(), 1);
  itimerspec when = {};
  when.it_value.tv_sec = wait_ns / 1'000'000'000;
  when.it_value.tv_nsec = wait_ns % 1'000'000'000;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void ShmConnectionManager::OnTimer() {
  uint64_t expirations;
  if (read(timer_.get(), &expirations, sizeof(expirations)) < 0) return;
  const int64_t now_ns = device_->clock()->NowNanoseconds();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_ns) {
    Id* const id = deadlines_.begin()->second;
    ClearDeadline(id);
    OnDeadline(id);
  }
  ArmTimer();
}

void ShmConnectionManager::OnDeadline(Id* id) {
  if (id->state == Id::State::kHalfOpen) {
    Drop(id, "a client sent no handshake in time");
    return;
  }
  if (device_->clock()->NowNanoseconds() < id->connect_deadline_ns) {
    TryToConnect(id);
    return;
  }
  FailConnect(id, absl::DeadlineExceededError(absl::StrCat(
                      id->peer.ToString(),
                      " did not answer in time: its process may be stopped, "
                      "or too busy to accept connections")));
}

// --- Listening ---------------------------------------------------------------

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
  if (!Watch(id, EPOLLIN)) return Errno("epoll_ctl");
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
    UniqueFd(accept4(listener->socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
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
                          kind.ok() ? "no hello" : Message(kind.status())));
    return;
  }
  absl::StatusOr<HandshakeSetup> setup = DecodeSetup(message);
  if (absl::IsFailedPrecondition(setup.status())) {
    log_.Write(absl::StrCat("refused a client: ", Message(setup.status())));
    RejectAndForget(id, Message(setup.status()));
    return;
  }
  if (!setup.ok()) {
    Drop(id, absl::StrCat("a client sent ", Message(setup.status())));
    return;
  }
  if (const std::string reason = ReasonToRefuse(*id); !reason.empty()) {
    log_.Write(absl::StrCat("refused a client: ", reason));
    RejectAndForget(id, reason);
    return;
  }
  absl::StatusOr<ShmLink::Peer> peer = MapPeer(*setup, message);
  if (!peer.ok()) {
    Drop(id, absl::StrCat("a client's memory is not usable (",
                          Message(peer.status()), ")"));
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
  OfferReads(id->hello, &event);
  PushEvent(std::move(event));
}

std::string ShmConnectionManager::ReasonToRefuse(const Id& id) const {
  if (device_->options().allow_other_users) return "";
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (getsockopt(id.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) !=
      0) {
    return "the client's user is not known";
  }
  if (peer.uid == geteuid()) return "";
  return absl::StrCat("the server takes connections of its own user (",
                      geteuid(), ") only, not of user ", peer.uid,
                      ": start it with allow_other_users");
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
  absl::StatusOr<ShmLink::Local> segment =
      ShmLink::Local::Create(RingLinesFor(qp->max_send_wr()), qp->access());
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
  const absl::Status established =
      Establish(id, qp, id->hello, *std::move(id->hello_peer));
  if (!established.ok()) return established;

  // The client may have gone meanwhile: that shows as a disconnect.
  CmEvent event;
  event.type = CmEvent::Type::kEstablished;
  event.id = id;
  OfferReads(id->hello, &event);
  PushEvent(std::move(event));
  return absl::OkStatus();
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

// --- Connecting --------------------------------------------------------------

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
      device_->clock()->NowNanoseconds() + absl::ToInt64Nanoseconds(timeout);
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
      FailConnect(id, Errno("connect"));
      return;
  }
}

void ShmConnectionManager::SendHello(Id* id) {
  QueuePair* const qp = device_->FindQp(id->qp_num);
  if (qp == nullptr) {
    FailConnect(id, absl::CancelledError("connect: the QP was destroyed"));
    return;
  }
  absl::StatusOr<ShmLink::Local> segment =
      ShmLink::Local::Create(RingLinesFor(qp->max_send_wr()), qp->access());
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
    FailConnect(id, Errno("epoll_ctl"));
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
    FailConnect(id, absl::FailedPreconditionError(absl::StrCat(
                        id->peer.ToString(), ": ", Message(setup.status()))));
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
  OfferReads(*setup, &event);
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

void ShmConnectionManager::Disconnect(CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->link == nullptr) return;
  Unwatch(id);
  id->state = Id::State::kClosed;
  const auto lock = device_->LockQueues();
  QueuePair* const qp = device_->FindQp(id->qp_num);
  if (qp != nullptr && qp->link() == id->link.get()) qp->Disconnect();
  id->link->HangUp();
}

// --- Both sides --------------------------------------------------------------

HandshakeSetup ShmConnectionManager::MakeSetup(
    const QueuePair& qp, const ConnectionParameters& parameters,
    const SocketAddress& address) const {
  const auto max_reads = static_cast<uint8_t>(kMaxReads);
  HandshakeSetup setup;
  setup.qp_num = qp.qp_num;
  setup.pd = qp.protection_domain()->id;
  setup.send_cq_line = qp.send_cq_line();
  setup.recv_cq_line = qp.recv_cq_line();
  setup.ring_lines = RingLinesFor(qp.max_send_wr());
  setup.asymmetric_fence = AsymmetricFence::Available();
  setup.responder_resources =
      std::min(parameters.responder_resources, max_reads);
  setup.initiator_depth = std::min(parameters.initiator_depth, max_reads);
  setup.rnr_retry_count = std::min<uint8_t>(parameters.rnr_retry_count, 7);
  setup.retry_count = std::min<uint8_t>(parameters.retry_count, 7);
  setup.address = address;
  setup.private_data = parameters.private_data;
  return setup;
}

absl::StatusOr<ShmLink::Peer> ShmConnectionManager::MapPeer(
    const HandshakeSetup& setup, const ControlMessage& message) const {
  absl::StatusOr<std::shared_ptr<const PeerMapping>> device = cache_->Map(
      message.fds[0].get(),
      {.min_bytes = kDeviceSegmentBytes, .max_bytes = kDeviceSegmentBytes});
  if (!device.ok()) return device.status();
  absl::StatusOr<std::shared_ptr<const PeerMapping>> segment =
      cache_->Map(message.fds[1].get(),
                  {.min_bytes = LinkSegmentBytes(setup.ring_lines),
                   .max_bytes = 2 * LinkSegmentBytes(setup.ring_lines)});
  if (!segment.ok()) return segment.status();
  ShmLink::Peer peer;
  peer.device = *std::move(device);
  peer.segment = *std::move(segment);
  peer.ring_lines = setup.ring_lines;
  peer.qp_num = setup.qp_num;
  peer.pd = setup.pd;
  peer.send_cq_line = setup.send_cq_line;
  peer.recv_cq_line = setup.recv_cq_line;
  return peer;
}

absl::Status ShmConnectionManager::Establish(Id* id, QueuePair* qp,
                                             const HandshakeSetup& peer,
                                             ShmLink::Peer mapped) {
  const bool asymmetric = peer.asymmetric_fence && AsymmetricFence::Available();
  Unwatch(id);
  ClearDeadline(id);
  id->link = std::make_shared<ShmLink>(
      std::move(id->socket), *std::exchange(id->segment, std::nullopt),
      std::move(mapped), asymmetric, &device_->memory().arenas(), cache_);

  const ConnectionParameters& own = id->parameters;
  QueuePair::ConnectAttributes attributes;
  attributes.peer_qp_num = peer.qp_num;
  attributes.max_rd_atomic =
      std::min({own.initiator_depth, peer.responder_resources,
                static_cast<uint8_t>(kMaxReads)});
  attributes.max_dest_rd_atomic =
      std::min({own.responder_resources, peer.initiator_depth,
                static_cast<uint8_t>(kMaxReads)});
  attributes.min_rnr_timer = std::min<uint8_t>(own.min_rnr_timer, 31);
  attributes.retry_count = std::min(own.retry_count, peer.retry_count);
  attributes.rnr_retry = peer.rnr_retry_count;
  attributes.peer_rnr_retry = std::min<uint8_t>(own.rnr_retry_count, 7);
  if (qp->Connect(id->link, attributes) != 0 || !Watch(id, EPOLLRDHUP)) {
    id->link->HangUp();
    return absl::ResourceExhaustedError(
        "epoll_ctl: no more descriptors can be watched; raise "
        "fs.epoll.max_user_watches");
  }
  id->state = Id::State::kConnected;
  return absl::OkStatus();
}

}  // namespace rdma::soft
