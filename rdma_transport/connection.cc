#include "rdma_transport/connection.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// A frame with both parts offered, behind as many work requests as there can be
// that nothing tells the completion of.
constexpr uint32_t kMinSendQueueDepth =
    2 * kMaxSegments + 1 + SendQueue::kSignalEvery - 1;
static_assert(kWishedSendQueueDepth >= kMinSendQueueDepth);
// What it takes to send one, beyond what an idle connection has. New
// connections leave as much in the CQ, or nothing large could be sent by any.
constexpr uint32_t kOneOffer = kMinSendQueueDepth - kIdleSendSlots;

ConnectionParameters ParametersOf(const rpc::FabricOptions& fabric,
                                  const Handshake& handshake) {
  ConnectionParameters parameters;
  parameters.private_data = EncodeHandshake(handshake);
  parameters.timeout = fabric.timeout;
  parameters.retry_count = fabric.retry_count;
  parameters.rnr_retry_count = fabric.rnr_retry_count;
  parameters.min_rnr_timer = fabric.min_rnr_timer;
  parameters.traffic_class = fabric.traffic_class;
  if (fabric.mtu_bytes != 0) {
    // 256 is IBV_MTU_256, and each further one twice as much.
    parameters.mtu = static_cast<ibv_mtu>(std::bit_width(fabric.mtu_bytes) -
                                          std::bit_width(256u) +
                                          static_cast<int>(IBV_MTU_256));
  }
  return parameters;
}

// gRPC's form of a peer's address.
std::string PeerName(const SocketAddress& address) {
  return absl::StrCat(address.family() == AF_INET6 ? "ipv6:" : "ipv4:",
                      address.ToString());
}

}  // namespace

Connection::Connection(Poller* poller, CallDelivery* delivery,
                       ConnectionOwner* owner,
                       const rpc::TransportOptions& options, bool is_client)
    : poller_(poller),
      delivery_(delivery),
      owner_(owner),
      options_(options),
      is_client_(is_client),
      send_queue_(0) {
  poller_->counters().open_connections.Add(1);
}

absl::Status Connection::Init() {
  if (!poller_->failure().ok()) return poller_->failure();
  DeviceContext& context = poller_->context();
  use_windows_ = context.has_memory_windows();
  invalidation_flags_ = context.device()->invalidation_flags();
  const DeviceUse use = UseOf(context.device()->attributes(),
                              context.device()->useful_inline_data());
  QueuePair::Depths depths;
  depths.max_send_wr = use.send_queue_depth;
  depths.max_send_sge = use.send_sges;
  depths.max_inline_data = use.inline_bytes;
  auto qp =
      QueuePair::Create(context.pd(), poller_->cq(), poller_->srq(), depths);
  if (!qp.ok()) return qp.status();
  qp_ = *std::move(qp);
  if (qp_->depths().max_send_wr < kMinSendQueueDepth) {
    return absl::FailedPreconditionError(
        absl::StrCat("the device ", std::string(context.device()->name()),
                     " has send queues of ", qp_->depths().max_send_wr,
                     " entries, less than ", kMinSendQueueDepth,
                     ": large messages would never be sent"));
  }
  qp_send_depth_ = std::min(kWishedSendQueueDepth, qp_->depths().max_send_wr);
  // Each may complete, where the connection breaks also the unsignaled ones.
  if (absl::Status status =
          poller_->ReserveCompletions(this, kIdleSendSlots, kOneOffer);
      !status.ok()) {
    return status;
  }
  reserved_completions_ = kIdleSendSlots;
  send_queue_ = SendQueue(kIdleSendSlots);
  inline_limit_ =
      std::min<uint32_t>(qp_->depths().max_inline_data, kMaxInlineBytes);
  if (absl::Status status = poller_->receive_pool().Reserve(kInitialWindow);
      !status.ok()) {
    return status;
  }
  reserved_receives_ = kInitialWindow;
  receive_credits_.Reset(kInitialWindow);
  poller_->AddConnection(qp_->number(), this);
  return absl::OkStatus();
}

Handshake Connection::OwnHandshake() const {
  Handshake own;
  own.features = use_windows_ ? kFeatureWindows : 0;
  own.receive_buffer_bytes = poller_->receive_pool().buffer_bytes();
  own.initial_credits = kInitialWindow;
  own.max_message_bytes = options_.max_receive_message_bytes;
  own.max_attachment_bytes = options_.max_receive_attachment_bytes;
  own.max_calls = kMaxCalls;
  return own;
}

void Connection::ApplyPeerHandshake(const Handshake& peer) {
  peer_windows_ = (peer.features & kFeatureWindows) != 0;
  frame_limit_ = eager_limit_ = peer.receive_buffer_bytes;
  if (options_.eager_limit_bytes != 0) {
    eager_limit_ = std::min(frame_limit_, options_.eager_limit_bytes);
  }
  at_once_limit_ = std::min(eager_limit_, inline_limit_);
  peer_initial_credits_ = peer.initial_credits;
  send_credits_.Reset(peer.initial_credits);
  peer_max_calls_ = std::min(peer.max_calls, kMaxSlot);
  peer_max_message_bytes_ = peer.max_message_bytes;
  peer_max_attachment_bytes_ = peer.max_attachment_bytes;
}

absl::StatusOr<Connection*> Connection::Connect(
    Poller* poller, CallDelivery* delivery, ConnectionOwner* owner,
    const SocketAddress& address, const rpc::TransportOptions& options) {
  std::unique_ptr<Connection> connection = absl::WrapUnique(
      new Connection(poller, delivery, owner, options, /*is_client=*/true));
  if (absl::Status status = connection->Init(); !status.ok()) return status;
  ConnectionParameters parameters =
      ParametersOf(options.fabric, connection->OwnHandshake());
  const ibv_device_attr& limits = poller->context().device()->attributes();
  parameters.initiator_depth = ReadDepth(limits.max_qp_init_rd_atom);
  parameters.responder_resources = ReadDepth(limits.max_qp_rd_atom);
  absl::StatusOr<CmId*> id = poller->connection_manager().Connect(
      address, connection->qp_->get(), parameters, options.connect_timeout,
      static_cast<CmEventHandler*>(connection.get()));
  if (!id.ok()) return id.status();
  connection->id_ = *id;
  connection->peer_name_ = PeerName(address);
  return connection.release();
}

absl::StatusOr<Connection*> Connection::Accept(
    Poller* poller, CallDelivery* delivery, ConnectionOwner* owner,
    const CmEvent& event, const rpc::TransportOptions& options) {
  ConnectionManager& cm = poller->connection_manager();
  const auto decline = [&](const absl::Status& why) {
    cm.Reject(event.id,
              std::string(why.message().substr(0, kMaxRejectPrivateData)))
        .IgnoreError();
    cm.Destroy(event.id);
    return why;
  };
  const absl::StatusOr<Handshake> peer =
      DecodeHandshake(event.private_data, "server", "client");
  if (!peer.ok()) return decline(peer.status());
  std::unique_ptr<Connection> connection = absl::WrapUnique(
      new Connection(poller, delivery, owner, options, /*is_client=*/false));
  if (absl::Status status = connection->Init(); !status.ok()) {
    return decline(status);
  }
  ConnectionParameters parameters =
      ParametersOf(options.fabric, connection->OwnHandshake());
  const ibv_device_attr& limits = poller->context().device()->attributes();
  parameters.initiator_depth = std::min(ReadDepth(limits.max_qp_init_rd_atom),
                                        event.responder_resources);
  parameters.responder_resources =
      std::min(ReadDepth(limits.max_qp_rd_atom), event.initiator_depth);
  connection->max_reads_ = std::max<uint32_t>(parameters.initiator_depth, 1);
  connection->ApplyPeerHandshake(*peer);
  connection->peer_name_ = PeerName(event.id->peer_address());
  event.id->context = static_cast<CmEventHandler*>(connection.get());
  if (absl::Status status =
          cm.Accept(event.id, connection->qp_->get(), parameters);
      !status.ok()) {
    connection.reset();  // the QP before the id
    return decline(status);
  }
  connection->id_ = event.id;
  // Frames may come, and be answered, before the connection is reported as
  // established.
  connection->state_ = State::kUp;
  connection->ScheduleKeepalive(options.keepalive_time);
  return connection.release();
}

Connection::~Connection() {
  if (qp_ != nullptr) poller_->RemoveConnection(qp_->number());
  if (reserved_receives_ > 0) {
    SetExtraReceives(0).IgnoreError();  // fewer can always be had
    poller_->receive_pool().Unreserve(kInitialWindow);
  }
  // The windows before the QP that they are bound to: rxe waits 50 s for them.
  // The QP before its id (ConnectionManager::Destroy), and before what could be
  // read through it.
  offers_.ReleaseWindows();
  qp_.reset();
  poller_->UnreserveCompletions(reserved_completions_);
  if (id_ != nullptr) poller_->connection_manager().Destroy(id_);
  poller_->counters().unanswered_offers.Subtract(offers_.unanswered());
  offers_.Clear();
  poller_->counters().open_connections.Subtract(1);
}

void Connection::OnCmEvent(CmEvent& event) {
  switch (event.type) {
    case CmEvent::Type::kEstablished:
      OnUp(event);
      return;
    case CmEvent::Type::kConnectFailed: {
      absl::Status why = event.status;
      if (event.rejected && !event.private_data.empty()) {
        const std::string reason(event.private_data.c_str());
        why = absl::UnavailableError(
            absl::StrCat("the server at ", peer_name_,
                         " rejected the connection: ", reason));
      }
      Close(why);
      return;
    }
    case CmEvent::Type::kDisconnected:
      // What it had sent before is still to be had from the CQ.
      poller_->NotifyWhenPolled(this);
      return;
    case CmEvent::Type::kConnectRequest:
    case CmEvent::Type::kListenFailed:
      return;  // not of a connection
  }
}

void Connection::OnUp(const CmEvent& event) {
  if (state_ != State::kConnecting) return;  // a server's is up since Accept
  const absl::StatusOr<Handshake> peer =
      DecodeHandshake(event.private_data, "client", "server");
  if (!peer.ok()) {
    Close(absl::Status(absl::StatusCode::kUnavailable,
                       absl::StrCat("the server at ", peer_name_, ": ",
                                    std::string(peer.status().message()))));
    return;
  }
  ApplyPeerHandshake(*peer);
  const ibv_device_attr& limits = poller_->context().device()->attributes();
  max_reads_ =
      std::max<uint32_t>(std::min(ReadDepth(limits.max_qp_init_rd_atom),
                                  event.responder_resources),
                         1);
  state_ = State::kUp;
  ScheduleKeepalive(options_.keepalive_time);
  owner_->OnConnectionUp(*this);
  // No call was open yet, so no callback can come of these.
  for (auto& [wc, buffer] : std::exchange(early_, {})) {
    OnAnyFrame(wc, std::move(buffer));
  }
}

void Connection::OnDeviceError(const absl::Status& why, bool completions_lost) {
  completions_lost_ |= completions_lost;
  Close(why);
  MaybeFinish();  // it may have been closing
}

void Connection::OnPolled() { CloseAsPeerGone(); }

void Connection::CloseAsPeerGone() {
  Close(absl::UnavailableError(
      absl::StrCat("the connection to ", peer_name_,
                   " was closed by the peer, or the peer ended")));
}

// ---- What it has of the poller.

absl::Status Connection::SetExtraReceives(uint32_t wanted) {
  const uint32_t extra = reserved_receives_ - kInitialWindow;
  absl::Status status = poller_->receive_pool().ChangeExtra(extra, wanted);
  if (status.ok()) reserved_receives_ = kInitialWindow + wanted;
  return status;
}

// As deep as the QP's where there is plenty in the CQ, else as deep as it
// takes.
bool Connection::GrowSendQueue(uint32_t count) {
  const uint32_t depth = send_queue_.depth();
  if (depth >= qp_send_depth_) return false;  // its own completions make room
  if (poller_->ReserveMoreCompletions(this, qp_send_depth_ - depth).ok()) {
    ResizeSendQueue(qp_send_depth_);
  } else if (depth < kMinSendQueueDepth &&
             poller_->ReserveCompletions(this, kMinSendQueueDepth - depth, 0)
                 .ok()) {
    ResizeSendQueue(kMinSendQueueDepth);
  } else {
    poller_->NotifyWhenUnreserved(this);
  }
  return send_queue_.HasRoom(count);
}

// A completion costs as much as a third of a small call.
void Connection::DeepenIfBusy() {
  const uint64_t since = frames() - completion_frames_;
  completion_frames_ = frames();
  if (since >= kIdleSendSlots / 2 && state_ == State::kUp &&
      poller_->ReserveMoreCompletions(this, kBusySendSlots - kIdleSendSlots)
          .ok()) {
    ResizeSendQueue(kBusySendSlots);
  }
}

void Connection::GiveBackCompletions() {
  // A free slot is left: for what makes the queue's last unsignaled entries
  // complete.
  if (send_queue_.depth() > kIdleSendSlots && queue_.empty() &&
      send_queue_.used() < kIdleSendSlots) {
    ResizeSendQueue(kIdleSendSlots);
  }
}

// REQUIRES: the completions are reserved, where it is to be deeper.
void Connection::ResizeSendQueue(uint32_t depth) {
  send_queue_.Resize(depth);
  const uint32_t reserved = std::exchange(reserved_completions_, depth);
  if (depth < reserved) {
    poller_->UnreserveCompletions(reserved - depth);
  } else {
    ArmShrinkTimer();
  }
}

// ---- Keepalive.

// Rounded up, so that the timers of many idle connections fire together.
void Connection::ScheduleKeepalive(absl::Duration after) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  const int64_t after_ns = absl::ToInt64Nanoseconds(std::min(after, kLongest));
  const int64_t grain_ns = std::max<int64_t>(after_ns / 8, 1);
  const int64_t time_ns = Poller::NowNs() + after_ns;
  poller_->Schedule(&keepalive_timer_,
                    (time_ns + grain_ns - 1) / grain_ns * grain_ns);
}

void Connection::OnKeepaliveTimer() {
  // Since the last look; or there are some, or frames that the peer does not
  // take.
  const bool had_calls =
      std::exchange(keepalive_sequence_, next_sequence_) != next_sequence_ ||
      live_calls_ != 0 || waiting_frames() != 0;
  const bool took_frames =
      std::exchange(keepalive_completed_, send_queue_.completed()) !=
      send_queue_.completed();
  if (received_frames_ != keepalive_frames_) {
    keepalive_frames_ = received_frames_;
    sign_wanted_ = takes_nothing_ = false;
    return ScheduleKeepalive(asks_rarely_ ? kRarely * options_.keepalive_time
                                          : options_.keepalive_time);
  }
  if (sign_wanted_ || (takes_nothing_ && !took_frames)) {
    return Close(absl::UnavailableError(
        absl::StrCat("keepalive watchdog timeout: ", peer_name_,
                     " was asked for a sign of life, and gave none within ",
                     absl::FormatDuration(options_.keepalive_timeout))));
  }
  if (!had_calls && !asks_rarely_ && !options_.keepalive_without_calls) {
    asks_rarely_ = true;
    if (poller_->connection_manager().tells_of_dead_peers()) return;
    return ScheduleKeepalive((kRarely - 1) * options_.keepalive_time);
  }
  // Where the peer has not even left a credit for it, it owes a sign anyway.
  if (!send_credits_.CanSendCredits()) {
    sign_wanted_ = true;
  } else if (HasSendRoom(1)) {
    sign_wanted_ = true;
    Outgoing out;
    out.fields.kind = FrameKind::kCredit;
    out.fields.flags = kWantAnswer;
    out.signaled = true;
    (void)PostEager(out, out.prefix_bytes());
  } else {
    // It is either slow or takes nothing any more: the next look tells.
    takes_nothing_ = !send_queue_.empty();
  }
  if (state_ == State::kUp) ScheduleKeepalive(options_.keepalive_timeout);
}

// A call begins.
void Connection::AskAsUsual() {
  asks_rarely_ = false;
  // Else it is being asked.
  if (!sign_wanted_) ScheduleKeepalive(options_.keepalive_time);
}

// ---- The way down.

// What came before the connection broke counts, also where a callback of the
// call has kept it from being delivered.
bool Connection::IsAnsweredInFull(const Call& call) const {
  return is_client_ && call.received_end && !call.inbox.empty() &&
         call.inbox.all_ready();
}

void Connection::Close(const absl::Status& why) {
  if (state_ == State::kClosing) return;
  const bool was_up = state_ == State::kUp;
  state_ = State::kClosing;
  is_plain_ = false;
  poller_->timers().Cancel(&shrink_timer_);
  poller_->timers().Cancel(&memory_timer_);
  poller_->timers().Cancel(&offer_timer_);
  poller_->timers().Cancel(&part_timer_);
  poller_->timers().Cancel(&keepalive_timer_);
  poller_->timers().Cancel(&joint_timer_);
  queue_.Clear();
  due_windows_.clear();
  early_.clear();
  invalidations_.clear();
  MessagesBeingRead& being_read = poller_->messages_being_read();
  for (const WaitingRead& waiting : waiting_reads_) {
    if (waiting.for_turn) being_read.StopWaiting(this);
  }
  waiting_reads_.clear();
  being_read.TellNext();
  offers_.StopGrowing();
  for (const std::unique_ptr<IncomingRead>& read : reads_) read->Abandon();
  for (Call* const call : std::exchange(slots_, {})) {
    if (call == nullptr) continue;
    call->connection = nullptr;
    call->owes_done = false;
    if (IsAnsweredInFull(*call)) {
      delivery_->CloseAfterLastFrame(*call);
    } else {
      delivery_->Close(*call, {why, !is_client_ || call->open_sent});
    }
  }
  live_calls_ = 0;
  if (id_ != nullptr && was_up) poller_->connection_manager().Disconnect(id_);
  // Everything posted flushes now, wherever the connection stood.
  if (absl::Status status = qp_->MoveToError(); status.ok()) {
    // A parser that waits for what is stored in its strings may be what keeps
    // this connection, and completions may be lost: Device::reserved_lkey.
    for (const std::unique_ptr<IncomingRead>& read : reads_) {
      if (read->arriving() != nullptr) read->arriving()->EndStoring();
    }
  } else {
    rpc::Log(rpc::LogLevel::kError, status.ToString());
  }
  PostMarker();
  owner_->OnConnectionDown(*this, why, was_up);
  MaybeFinish();
}

// What completed in order but unsignaled raises no completion, not even when
// the QP flushes: one that does tells that all before it is done with.
void Connection::PostMarker() {
  if (marker_posted_ || !send_queue_.ends_unsignaled() ||
      !send_queue_.HasRoom(1)) {
    return;
  }
  ibv_send_wr wr = {};
  bool signaled = true;
  send_queue_.PushPlain(&signaled, &wr.wr_id);
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qp_->get(), &wr, &bad) == 0) {
    marker_posted_ = true;
  } else {
    // A device that takes nothing in ERR: destroying the QP ends what is left.
    send_queue_.Unpush(1);
    completions_lost_ = true;
  }
}

void Connection::CloseWhenFlushed(const absl::Status& why) {
  close_when_flushed_ = why;
  is_plain_ = false;
  poller_->MarkDirty(this);
}

// A signaled frame behind all others tells when the peer has them.
void Connection::CloseIfFlushed() {
  if (!queue_.empty() || !offers_.empty() || !reads_.empty() ||
      !waiting_reads_.empty()) {
    return;
  }
  const bool last_word_due = !is_client_ && !last_word_said_;
  if (last_word_due || send_queue_.ends_unsignaled()) {
    if (!PostLastFrame()) return;
  }
  if (send_queue_.empty()) Close(close_when_flushed_);
}

// A server's is its last word, once: no call is taken from then on. May take
// the last credit, as none is needed any more. False: there is none, or no
// room.
bool Connection::PostLastFrame() {
  if (!send_credits_.CanSendCredits() || !HasSendRoom(1)) return false;
  Outgoing out;
  out.fields.kind = FrameKind::kCredit;
  if (!is_client_ && !std::exchange(last_word_said_, true)) {
    refusing_calls_ = true;
    is_plain_ = false;
    out.fields.kind = FrameKind::kGoAway;
    out.fields.flags = kNotRun;
    out.fields.call_sequence = last_opened_;
  }
  out.signaled = true;
  (void)PostEager(out, out.prefix_bytes());
  return true;
}

void Connection::MaybeFinish() {
  // What was posted goes with the QP where no completion tells of it.
  if (state_ != State::kClosing || buried_ || pins_ > 0 ||
      (!send_queue_.empty() && !completions_lost_)) {
    return;
  }
  buried_ = true;
  poller_->Bury(absl::WrapUnique<PolledConnection>(this));
}

}  // namespace rdma
