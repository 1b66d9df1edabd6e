// Making and destroying, events, and the end of connections. The two sides of
// connecting are in tcp_cm_connect.cc and tcp_cm_accept.cc.
#include "rdma_transport/hardware/tcp_connection_manager.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/qp_setup.h"
#include "rdma_transport/hardware/tcp_cm_id.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {

// --- Making and destroying ---------------------------------------------------

absl::StatusOr<std::unique_ptr<ConnectionManager>> TcpConnectionManager::Create(
    Device* device, const HardwareOptions& options) {
  absl::StatusOr<std::unique_ptr<Deadlines>> deadlines = Deadlines::Create();
  if (!deadlines.ok()) return deadlines.status();
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return VerbsError("epoll_create1", errno);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;  // ids are never null
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, (*deadlines)->fd(), &event) != 0) {
    return VerbsError("epoll_ctl", errno);
  }
  return absl::WrapUnique<ConnectionManager>(new TcpConnectionManager(
      device, options, *std::move(deadlines), std::move(epoll)));
}

TcpConnectionManager::TcpConnectionManager(Device* device,
                                           const HardwareOptions& options,
                                           std::unique_ptr<Deadlines> deadlines,
                                           UniqueFd epoll)
    : device_(device),
      options_(options),
      deadlines_(std::move(deadlines)),
      epoll_(std::move(epoll)),
      spare_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      random_(std::random_device()()) {}

TcpConnectionManager::~TcpConnectionManager() = default;

TcpConnectionManager::Id* TcpConnectionManager::Add(UniqueFd socket,
                                                    void* context) {
  auto owned = std::make_unique<Id>(std::move(socket));
  Id* const id = owned.get();
  id->context = context;
  ids_.emplace(id, std::move(owned));
  return id;
}

void TcpConnectionManager::Destroy(CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  deadlines_->Clear(id);
  if (id->half_open.has_value()) half_open_.erase(*id->half_open);
  if (id->state == Id::State::kListening) DestroyHalfOpenOf(id);
  // Closing the socket does not take it out of the epoll set where a forked
  // process has it, too.
  Unwatch(id);
  ids_.erase(id);
}

// --- Events ------------------------------------------------------------------

// One descriptor at a time: level-triggered ones come again, in turn, so that
// no event needs keeping.
std::optional<CmEvent> TcpConnectionManager::GetEvent() {
  while (CmId* const late = deadlines_->TakeExpired()) {
    std::optional<CmEvent> event = OnDeadline(static_cast<Id*>(late));
    if (event.has_value()) return event;
  }
  epoll_event ready;
  while (epoll_wait(epoll_.get(), &ready, 1, 0) == 1) {
    if (ready.data.ptr == nullptr) break;  // the deadlines': next time
    std::optional<CmEvent> event = OnReady(static_cast<Id*>(ready.data.ptr));
    if (event.has_value()) return event;
  }
  return std::nullopt;
}

std::optional<CmEvent> TcpConnectionManager::OnReady(Id* id) {
  switch (id->state) {
    case Id::State::kListening:
      OnListenerReady(id);
      return std::nullopt;
    case Id::State::kConnectingTcp:
      return OnTcpConnected(id);
    case Id::State::kAwaitingAnswer:
      return OnAnswer(id);
    case Id::State::kHalfOpen:
      return OnRequest(id, /*last_look=*/false);
    case Id::State::kAccepted:
      return OnClientReady(id);
    case Id::State::kConnected:
      return OnHangUp(id);
    case Id::State::kFailing:
    case Id::State::kRequested:
    case Id::State::kPeerGone:
    case Id::State::kClosed:
      Unwatch(id);
      return std::nullopt;
  }
  return std::nullopt;
}

// A message that has come counts, late as it is looked at: the one who is late
// may be this process, which did not run.
std::optional<CmEvent> TcpConnectionManager::OnDeadline(Id* id) {
  switch (id->state) {
    case Id::State::kFailing:
      return FailConnect(id, id->failure);
    case Id::State::kConnectingTcp:
      return FailConnect(
          id, absl::DeadlineExceededError(absl::StrCat(
                  id->peer.ToString(),
                  " did not answer in time: check that the host is up and that "
                  "no firewall drops TCP to that port")));
    case Id::State::kAwaitingAnswer:
      if (std::optional<CmEvent> event = OnAnswer(id)) return event;
      return FailConnect(
          id, absl::DeadlineExceededError(absl::StrCat(
                  id->peer.ToString(),
                  " did not answer in time: its process may be stopped, or too "
                  "busy to accept connections")));
    case Id::State::kHalfOpen:
      return OnRequest(id, /*last_look=*/true);
    default:
      return std::nullopt;
  }
}

bool TcpConnectionManager::Watch(Id* id, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = id;
  const int operation = id->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (epoll_ctl(epoll_.get(), operation, id->socket.get(), &event) != 0) {
    return false;
  }
  id->watched = true;
  return true;
}

void TcpConnectionManager::Unwatch(Id* id) {
  if (!id->watched) return;
  const int result =
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, id->socket.get(), nullptr);
  // Where it stays in the set, Watch must change it and not add it.
  id->watched = result != 0;
}

// --- Ends --------------------------------------------------------------------

// Nothing is to be said on a connection that is up: bytes end it, too.
std::optional<CmEvent> TcpConnectionManager::OnHangUp(Id* id) {
  Unwatch(id);
  id->state = Id::State::kPeerGone;
  CmEvent event;
  event.type = CmEvent::Type::kDisconnected;
  event.id = id;
  return event;
}

void TcpConnectionManager::Disconnect(CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kAccepted && id->state != Id::State::kConnected &&
      id->state != Id::State::kPeerGone) {
    return;
  }
  id->state = Id::State::kClosed;
  MoveQpToError(device_, std::exchange(id->qp, nullptr));
  // Not closed, so that the id keeps its addresses.
  Unwatch(id);
  shutdown(id->socket.get(), SHUT_RDWR);
}

}  // namespace rdma
