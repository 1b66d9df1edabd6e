#include "rdma_transport/hardware/rdma_cm_connection_manager.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/hardware/cm_status.h"
#include "rdma_transport/hardware/qp_setup.h"
#include "rdma_transport/hardware/rdma_cm_qp.h"
#include "rdma_transport/provider/local_address.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// rdma_resolve_addr(3) counts in milliseconds, in an int; longer waits end by
// Deadlines all the same.
constexpr int kLongestResolveMs = 600'000;

// How often ids that wait for their port to be up look at it. Its event goes to
// whoever reads the device's.
constexpr absl::Duration kFarewellInterval = absl::Milliseconds(200);

CmEvent EventOf(CmEvent::Type type, CmId* id) {
  CmEvent event;
  event.type = type;
  event.id = id;
  return event;
}

// The kernel turns the peer's values round: "responder resources" are those
// that this side needs. CmEvent has what the peer said.
void SetOfferedReads(const ReceivedCmEvent& received, CmEvent* event) {
  event->responder_resources = received.initiator_depth;
  event->initiator_depth = received.responder_resources;
}

// What both ends can do.
ReadLimits Agree(const ConnectionParameters& own,
                 const ReceivedCmEvent& received) {
  return {
      .served = std::min(own.responder_resources, received.responder_resources),
      .issued = std::min(own.initiator_depth, received.initiator_depth)};
}

rdma_conn_param MakeConnParam(const ConnectionParameters& parameters,
                              const ibv_qp& qp) {
  rdma_conn_param param = {};
  param.private_data = parameters.private_data.data();
  param.private_data_len = static_cast<uint8_t>(parameters.private_data.size());
  param.responder_resources = parameters.responder_resources;
  param.initiator_depth = parameters.initiator_depth;
  param.retry_count = parameters.retry_count;
  param.rnr_retry_count = parameters.rnr_retry_count;
  param.srq = qp.srq != nullptr ? 1 : 0;
  param.qp_num = qp.qp_num;
  return param;
}

}  // namespace

class RdmaCmConnectionManager::Id final : public CmId {
 public:
  enum class State {
    kListening,
    // Connecting.
    kResolvingAddress,
    kResolvingRoute,
    kAwaitingAnswer,
    // Accepting.
    kRequested,
    kAccepted,
    // Both.
    kConnected,
    kPeerGone,  // reported as disconnected; the QP is still to be flushed
    kClosed,    // nothing more is to be said of it
  };

  explicit Id(UniqueCmId handle) : handle(std::move(handle)) {}

  SocketAddress local_address() const override {
    return LocalAddressOf(handle.get());
  }
  // The target from the start, and not only once it is resolved.
  SocketAddress peer_address() const override {
    return target.family() == AF_UNSPEC ? PeerAddressOf(handle.get()) : target;
  }

  bool connecting() const {
    return state == State::kResolvingAddress ||
           state == State::kResolvingRoute || state == State::kAwaitingAnswer;
  }
  // REQUIRES: connecting().
  ConnectStage stage() const {
    if (state == State::kResolvingAddress) {
      return ConnectStage::kResolvingAddress;
    }
    return state == State::kResolvingRoute ? ConnectStage::kResolvingRoute
                                           : ConnectStage::kAwaitingAnswer;
  }

  UniqueCmId handle;
  State state = State::kClosed;
  ibv_qp* qp = nullptr;  // the user's; null once it is disconnected
  ConnectionParameters parameters;
  SocketAddress target;     // when connecting
  ReceivedCmEvent request;  // when accepting
};

// --- Making and destroying ---------------------------------------------------

absl::StatusOr<std::unique_ptr<ConnectionManager>>
RdmaCmConnectionManager::Create(Device* device) {
  absl::StatusOr<UniqueEventChannel> channel = CreateEventChannel();
  if (!channel.ok()) return channel.status();
  absl::StatusOr<std::unique_ptr<Deadlines>> deadlines = Deadlines::Create();
  if (!deadlines.ok()) return deadlines.status();
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return VerbsError("epoll_create1", errno);
  for (const int fd : {(*channel)->fd, (*deadlines)->fd()}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return VerbsError("epoll_ctl", errno);
    }
  }
  return absl::WrapUnique<ConnectionManager>(new RdmaCmConnectionManager(
      device, *std::move(channel), *std::move(deadlines), std::move(epoll)));
}

RdmaCmConnectionManager::RdmaCmConnectionManager(
    Device* device, UniqueEventChannel channel,
    std::unique_ptr<Deadlines> deadlines, UniqueFd epoll)
    : device_(device),
      channel_(std::move(channel)),
      deadlines_(std::move(deadlines)),
      epoll_(std::move(epoll)),
      farewell_timer_(std::make_unique<Id>(UniqueCmId())) {}

RdmaCmConnectionManager::~RdmaCmConnectionManager() = default;

RdmaCmConnectionManager::Id* RdmaCmConnectionManager::Add(UniqueCmId handle,
                                                          void* context) {
  auto owned = std::make_unique<Id>(std::move(handle));
  Id* const id = owned.get();
  id->context = context;
  id->handle->context = id;
  ids_.emplace(id, std::move(owned));
  return id;
}

void RdmaCmConnectionManager::Destroy(CmId* id) {
  deadlines_->Clear(id);
  UniqueCmId handle = std::move(static_cast<Id*>(id)->handle);
  const bool listens = static_cast<Id*>(id)->state == Id::State::kListening;
  ids_.erase(id);
  if (listens || CanBidFarewell(*handle)) return;
  if (farewells_.empty()) {
    deadlines_->Set(farewell_timer_.get(), kFarewellInterval);
  }
  farewells_.Add(std::move(handle));
}

void RdmaCmConnectionManager::BidFarewells() {
  farewells_.BidAll();
  if (!farewells_.empty()) {
    deadlines_->Set(farewell_timer_.get(), kFarewellInterval);
  }
}

// --- Listening ---------------------------------------------------------------

absl::StatusOr<CmId*> RdmaCmConnectionManager::Listen(
    const SocketAddress& address, int backlog, void* context) {
  absl::StatusOr<UniqueCmId> handle = CreateCmId(channel_.get());
  if (!handle.ok()) return handle.status();
  // So that a port which some client's end happens to have can be listened on.
  SetCmIdOption(handle->get(), RDMA_OPTION_ID_REUSEADDR, 1);
  const char* call = "rdma_bind_addr";
  SocketAddress bound = address;
  int result = rdma_bind_addr(handle->get(),
                              reinterpret_cast<sockaddr*>(&bound.storage));
  if (result == 0) {
    call = "rdma_listen";
    result = rdma_listen(handle->get(), backlog);
  }
  if (result != 0) {
    const int error = errno;
    return ListenError(call, error, address, IsLocalAddress(address));
  }
  if (!address.is_any()) {
    absl::Status status = CheckDevice(handle->get(), address);
    if (!status.ok()) return status;
  }
  Id* const id = Add(*std::move(handle), context);
  id->state = Id::State::kListening;
  return id;
}

// An id of a request that nobody will answer goes at once, which rejects it.
std::optional<CmEvent> RdmaCmConnectionManager::OnConnectRequest(
    const ReceivedCmEvent& received) {
  UniqueCmId handle(received.id);
  // librdmacm gives new ids the listener's context.
  auto* const listener = static_cast<Id*>(received.listener->context);
  const absl::Status status =
      CheckDevice(handle.get(), LocalAddressOf(handle.get()));
  if (!status.ok()) {
    const std::string_view reason(status.message().data(),
                                  status.message().size());
    rdma_reject(handle.get(), reason.data(),
                std::min(reason.size(), kMaxRejectPrivateData));
    return std::nullopt;
  }
  Id* const id = Add(std::move(handle), nullptr);
  id->state = Id::State::kRequested;
  id->request = received;
  CmEvent event = EventOf(CmEvent::Type::kConnectRequest, id);
  event.listener = listener;
  event.private_data = received.private_data;
  SetOfferedReads(received, &event);
  return event;
}

absl::Status RdmaCmConnectionManager::Accept(
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
  id->parameters = Clamp(parameters, device_->attributes());
  id->qp = qp;
  // In RTR before the peer hears of it: it may send at once.
  if (absl::Status status =
          BringUpQp(device_, id->handle.get(), qp, id->parameters,
                    Agree(id->parameters, id->request));
      !status.ok()) {
    return status;
  }
  rdma_conn_param param = MakeConnParam(id->parameters, *qp);
  if (rdma_accept(id->handle.get(), &param) != 0) {
    return VerbsError("rdma_accept", errno, id->peer_address().ToString());
  }
  id->state = Id::State::kAccepted;
  return absl::OkStatus();
}

absl::Status RdmaCmConnectionManager::Reject(CmId* cm_id,
                                             std::string_view reason) {
  auto* const id = static_cast<Id*>(cm_id);
  const size_t bytes = std::min(reason.size(), kMaxRejectPrivateData);
  if (rdma_reject(id->handle.get(), reason.data(),
                  static_cast<uint8_t>(bytes)) != 0) {
    return VerbsError("rdma_reject", errno, id->peer_address().ToString());
  }
  id->state = Id::State::kClosed;
  return absl::OkStatus();
}

// With no channel the id gets one of its own, where its events wait meanwhile.
absl::StatusOr<std::unique_ptr<CmId>> RdmaCmConnectionManager::Release(
    CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kRequested) {
    return absl::FailedPreconditionError("nobody waits for this id's answer");
  }
  if (rdma_migrate_id(id->handle.get(), nullptr) != 0) {
    return VerbsError("rdma_migrate_id", errno, id->peer_address().ToString());
  }
  return std::move(ids_.extract(cm_id).mapped());
}

absl::StatusOr<CmId*> RdmaCmConnectionManager::Adopt(
    std::unique_ptr<CmId> released) {
  std::unique_ptr<Id> owned(static_cast<Id*>(released.release()));
  Id* const id = owned.get();
  if (rdma_migrate_id(id->handle.get(), channel_.get()) != 0) {
    return VerbsError("rdma_migrate_id", errno, id->peer_address().ToString());
  }
  ids_.emplace(id, std::move(owned));
  return id;
}

std::optional<CmEvent> RdmaCmConnectionManager::OnEstablished(Id* id) {
  if (id->state != Id::State::kAccepted) return std::nullopt;
  id->state = Id::State::kConnected;
  return EventOf(CmEvent::Type::kEstablished, id);
}

// --- Connecting --------------------------------------------------------------

absl::StatusOr<CmId*> RdmaCmConnectionManager::Connect(
    const SocketAddress& address, ibv_qp* qp,
    const ConnectionParameters& parameters, absl::Duration timeout,
    void* context) {
  if (absl::Status status = CheckPrivateData(parameters.private_data.size(),
                                             kMaxConnectPrivateData);
      !status.ok()) {
    return status;
  }
  absl::StatusOr<UniqueCmId> handle = CreateCmId(channel_.get());
  if (!handle.ok()) return handle.status();
  Id* const id = Add(*std::move(handle), context);
  id->qp = qp;
  id->parameters = Clamp(parameters, device_->attributes());
  id->target = address;
  if (absl::Status status = StartConnecting(id, timeout); !status.ok()) {
    Destroy(id);
    return status;
  }
  return id;
}

absl::Status RdmaCmConnectionManager::StartConnecting(Id* id,
                                                      absl::Duration timeout) {
  rdma_cm_id* const handle = id->handle.get();
  SetCmIdOption(handle, RDMA_OPTION_ID_REUSEADDR, 1);
  // For the peer, which hears of it in the request.
  SetCmIdOption(handle, RDMA_OPTION_ID_ACK_TIMEOUT, id->parameters.timeout);
  if (id->parameters.traffic_class != 0) {
    SetCmIdOption(handle, RDMA_OPTION_ID_TOS, id->parameters.traffic_class);
  }
  deadlines_->Set(id, timeout);
  SocketAddress target = id->target;
  if (rdma_resolve_addr(handle, nullptr,
                        reinterpret_cast<sockaddr*>(&target.storage),
                        RemainingMilliseconds(id)) != 0) {
    return ResolveError("rdma_resolve_addr", errno, id->target);
  }
  id->state = Id::State::kResolvingAddress;
  return absl::OkStatus();
}

int RdmaCmConnectionManager::RemainingMilliseconds(Id* id) const {
  const absl::Duration remaining = deadlines_->Remaining(id);
  if (remaining >= absl::Milliseconds(kLongestResolveMs)) {
    return kLongestResolveMs;
  }
  return std::max(static_cast<int>(absl::ToInt64Milliseconds(remaining)), 1);
}

std::optional<CmEvent> RdmaCmConnectionManager::OnAddressResolved(Id* id) {
  if (id->state != Id::State::kResolvingAddress) return std::nullopt;
  absl::Status status = CheckDevice(id->handle.get(), id->target);
  if (!status.ok()) return FailConnect(id, std::move(status));
  if (rdma_resolve_route(id->handle.get(), RemainingMilliseconds(id)) != 0) {
    return FailConnect(id,
                       ResolveError("rdma_resolve_route", errno, id->target));
  }
  id->state = Id::State::kResolvingRoute;
  return std::nullopt;
}

std::optional<CmEvent> RdmaCmConnectionManager::OnRouteResolved(Id* id) {
  if (id->state != Id::State::kResolvingRoute) return std::nullopt;
  rdma_conn_param param = MakeConnParam(id->parameters, *id->qp);
  if (rdma_connect(id->handle.get(), &param) != 0) {
    return FailConnect(
        id, VerbsError("rdma_connect", errno, id->target.ToString()));
  }
  id->state = Id::State::kAwaitingAnswer;
  return std::nullopt;
}

std::optional<CmEvent> RdmaCmConnectionManager::OnConnectResponse(
    Id* id, const ReceivedCmEvent& received) {
  if (id->state != Id::State::kAwaitingAnswer) return std::nullopt;
  CmEvent event = EventOf(CmEvent::Type::kEstablished, id);
  event.private_data = received.private_data;
  SetOfferedReads(received, &event);
  absl::Status status =
      BringUpQp(device_, id->handle.get(), id->qp, id->parameters,
                Agree(id->parameters, received));
  if (status.ok() && rdma_establish(id->handle.get()) != 0) {
    status = VerbsError("rdma_establish", errno, id->target.ToString());
  }
  if (!status.ok()) return FailConnect(id, std::move(status));
  deadlines_->Clear(id);
  id->state = Id::State::kConnected;
  return event;
}

std::optional<CmEvent> RdmaCmConnectionManager::FailTimedOut(Id* id) {
  if (!id->connecting()) return std::nullopt;
  return FailConnect(id, ConnectTimedOut(id->stage(), id->target));
}

CmEvent RdmaCmConnectionManager::FailConnect(Id* id, absl::Status status) {
  deadlines_->Clear(id);
  id->state = Id::State::kClosed;
  CmEvent event = EventOf(CmEvent::Type::kConnectFailed, id);
  event.status = std::move(status);
  return event;
}

// --- Events ------------------------------------------------------------------

std::optional<CmEvent> RdmaCmConnectionManager::GetEvent() {
  while (CmId* const late = deadlines_->TakeExpired()) {
    if (late == farewell_timer_.get()) {
      BidFarewells();
      continue;
    }
    std::optional<CmEvent> event = FailTimedOut(static_cast<Id*>(late));
    if (event.has_value()) return event;
  }
  while (std::optional<ReceivedCmEvent> received =
             ReceiveCmEvent(channel_.get())) {
    std::optional<CmEvent> event = OnEvent(*received);
    if (event.has_value()) return event;
  }
  return std::nullopt;
}

std::optional<CmEvent> RdmaCmConnectionManager::OnEvent(
    const ReceivedCmEvent& received) {
  if (received.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    return OnConnectRequest(received);
  }
  auto* const id = static_cast<Id*>(received.id->context);
  if (id == nullptr) {  // it waits to bid farewell
    if (received.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
      farewells_.Drop(received.id);
    }
    return std::nullopt;
  }
  switch (received.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return OnAddressResolved(id);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return OnRouteResolved(id);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return OnConnectResponse(id, received);
    case RDMA_CM_EVENT_ESTABLISHED:
      return OnEstablished(id);
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return OnEnd(id, received);
    case RDMA_CM_EVENT_ADDR_CHANGE:
      // The QP goes on with the path that it has; if that is dead, its retries
      // say so.
      rpc::Log(rpc::LogLevel::kWarning,
               absl::StrCat("the network interface of the connection to ",
                            id->peer_address().ToString(),
                            " changed its hardware address (bonding?)"));
      return std::nullopt;
    default:
      return std::nullopt;  // TIMEWAIT_EXIT: QPs are not used twice
  }
}

std::optional<CmEvent> RdmaCmConnectionManager::OnEnd(
    Id* id, const ReceivedCmEvent& received) {
  switch (id->state) {
    case Id::State::kListening: {
      id->state = Id::State::kClosed;
      CmEvent event = EventOf(CmEvent::Type::kListenFailed, id);
      event.status = absl::UnavailableError(
          absl::StrCat("the RDMA device of ", id->local_address().ToString(),
                       " was removed"));
      return event;
    }
    case Id::State::kResolvingAddress:
    case Id::State::kResolvingRoute:
    case Id::State::kAwaitingAnswer: {
      CmEvent event = FailConnect(
          id, ConnectFailure(received.type, received.status, id->target));
      if (received.type == RDMA_CM_EVENT_REJECTED &&
          IsRejectedByUser(received.status)) {
        event.rejected = true;
        event.private_data = received.private_data;
      }
      return event;
    }
    case Id::State::kAccepted:
      if (received.type == RDMA_CM_EVENT_DISCONNECTED) break;
      return FailConnect(id, ConnectFailure(received.type, received.status,
                                            id->peer_address()));
    case Id::State::kRequested:
      // The request was taken back. Accept will fail, so nobody needs to know.
    case Id::State::kPeerGone:
    case Id::State::kClosed:
      return std::nullopt;
    case Id::State::kConnected:
      break;
  }
  id->state = Id::State::kPeerGone;
  return EventOf(CmEvent::Type::kDisconnected, id);
}

// --- Ends --------------------------------------------------------------------

void RdmaCmConnectionManager::Disconnect(CmId* cm_id) {
  auto* const id = static_cast<Id*>(cm_id);
  if (id->state != Id::State::kAccepted && id->state != Id::State::kConnected &&
      id->state != Id::State::kPeerGone) {
    return;
  }
  id->state = Id::State::kClosed;
  MoveQpToError(device_, std::exchange(id->qp, nullptr));
  if (!CanBidFarewell(*id->handle)) return;  // destroying it will
  // EINVAL where the peer said it first: it has its answer then.
  rdma_disconnect(id->handle.get());
}

absl::Status RdmaCmConnectionManager::CheckDevice(
    const rdma_cm_id* id, const SocketAddress& address) const {
  if (id->verbs == nullptr) return absl::OkStatus();
  const char* const name = ibv_get_device_name(id->verbs->device);
  if (device_->name() == name) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(address.ToString(), " belongs to the RDMA device ", name,
                   ", and this end uses ", std::string(device_->name()),
                   ": choose the device '", name, "' or 'auto'"));
}

}  // namespace rdma
