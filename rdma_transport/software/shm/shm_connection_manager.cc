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
#include "rdma_transport/asymmetric_fence.h"
#include "rdma_transport/software/shm/shm_cm_id.h"

namespace rdma::soft {
namespace {

constexpr int kEventsPerTurn = 64;

}  // namespace

absl::Status CmErrnoStatus(std::string_view call) {
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(call), ": ", std::strerror(errno)));
}

// The peer's own values: its initiator depth bounds our responder resources,
// and the other way round.
void SetOfferedReads(const HandshakeSetup& peer, CmEvent* event) {
  event->responder_resources = peer.responder_resources;
  event->initiator_depth = peer.initiator_depth;
}

// --- Making and destroying ---------------------------------------------------

absl::StatusOr<std::unique_ptr<ShmConnectionManager>>
ShmConnectionManager::Create(EngineDevice* device, MappingCache* cache,
                             uint64_t seed) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return CmErrnoStatus("epoll_create1");
  UniqueFd counter(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!counter) return CmErrnoStatus("eventfd");
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return CmErrnoStatus("timerfd_create");
  std::unique_ptr<ShmConnectionManager> manager(
      new ShmConnectionManager(device, cache, seed, std::move(epoll),
                               std::move(counter), std::move(timer)));
  for (const UniqueFd* fd : {&manager->counter_, &manager->timer_}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = const_cast<UniqueFd*>(fd);
    if (epoll_ctl(manager->fd(), EPOLL_CTL_ADD, fd->get(), &event) != 0) {
      return CmErrnoStatus("epoll_ctl");
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
  ClearCounterIfIdle();
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
  ClearCounterIfIdle();
  return event;
}

void ShmConnectionManager::ClearCounterIfIdle() {
  if (!events_.empty()) return;
  eventfd_t value;
  eventfd_read(counter_.get(), &value);
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

// --- What both sides do ------------------------------------------------------

absl::Status ShmConnectionManager::CheckPeersUser(const Id& id) const {
  if (device_->options().allow_other_users) return absl::OkStatus();
  // Of a listener these are the credentials with which it began to listen.
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (getsockopt(id.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) !=
      0) {
    return absl::PermissionDeniedError("the peer's user is not known");
  }
  if (peer.uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the peer is of user ", peer.uid, ", this process of user ", geteuid(),
      ": set verbena.allow_other_users on both sides if they trust each "
      "other"));
}

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
  setup.asymmetric_fence =
      AsymmetricFence::Available(AsymmetricFence::Reach::kProcesses);
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
  const bool asymmetric =
      peer.asymmetric_fence &&
      AsymmetricFence::Available(AsymmetricFence::Reach::kProcesses);
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

}  // namespace rdma::soft
