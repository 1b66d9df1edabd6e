// Receiving frames. No byte of a peer is trusted.
#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "rdma_transport/call_opening.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/wc_status.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

constexpr uint32_t kMaxWindow = 512;
// What a stream's window may grow to; more than that has no peer granted.
constexpr int64_t kMaxStreamWindow = 4 << 20;
constexpr int64_t kMostWindow = int64_t{1} << 56;
constexpr int64_t kShrinkAfterNs = 1'000'000'000;

absl::Span<const std::byte> BytesOf(const rpc::Buffer& buffer) {
  return {buffer.data(), buffer.size()};
}

// Of a frame with immediate; else that of none.
uint32_t TagOf(const ibv_wc& wc) {
  return (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) : 0;
}

// The status that a reset carries. A peer may say anything but OK.
absl::Status ResetStatus(const FrameView& view) {
  auto code = static_cast<absl::StatusCode>(view.fields.detail);
  if (view.fields.detail == 0 || view.fields.detail > 16) {
    code = absl::StatusCode::kUnknown;
  }
  return absl::Status(code, {reinterpret_cast<const char*>(view.header.data()),
                             view.header.size()});
}

}  // namespace

void Connection::ProtocolError(std::string_view what) {
  const absl::Status why = absl::InternalError(absl::StrCat(
      "the peer ", peer_name_, " broke the protocol: ", std::string(what)));
  rpc::Log(rpc::LogLevel::kWarning, std::string(why.message()));
  Close(why);
}

void Connection::OnReceiveError(const ibv_wc& wc) {
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return;  // the way down is known
  Close(WcStatusToStatus(wc.status, "receiving from " + peer_name_));
}

// A server may speak before we hear that it accepted, though not of calls.
void Connection::OnEarlyFrame(const ibv_wc& wc, rpc::Buffer&& buffer) {
  const uint32_t kind =
      (wc.wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc.imm_data) >> 28 : 0;
  const bool allowed = kind == static_cast<uint32_t>(FrameKind::kGoAway) ||
                       kind == static_cast<uint32_t>(FrameKind::kCredit);
  if (!allowed || early_.size() >= kInitialWindow) {
    return ProtocolError("a frame before the connection was accepted");
  }
  early_.emplace_back(wc, std::move(buffer));
}

void Connection::OnReceive(const ibv_wc& wc) {
  if (is_client_) {
    OnAnswer(wc);
  } else {
    OnRequest(wc);
  }
}

// TakeAnswer and TakeRequest are the short way of what most frames are, where
// nothing is special about them, and of those with an attachment. They do as
// OnAnyFrame would, with its checks in one go. False: not so, and nothing of
// the frame was taken in. Delivering is the last action: the turnstile may be
// lost.

void Connection::OnAnswer(const ibv_wc& wc) {
  rpc::Buffer buffer = poller_->receive_pool().Take(wc.wr_id, wc.byte_len);
  if (ABSL_PREDICT_FALSE(!TakeAnswer<Beside::kNothing>(wc, buffer))) {
    OnAnswerBeside(wc, rpc::Buffer(std::move(buffer)));
  }
}

ABSL_ATTRIBUTE_NOINLINE void Connection::OnAnswerBeside(const ibv_wc& wc,
                                                        rpc::Buffer&& buffer) {
  if (!TakeAnswer<Beside::kAttachment>(wc, buffer)) {
    OnAnyFrame(wc, std::move(buffer));
  }
}

template <Beside kBeside>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::TakeAnswer(
    const ibv_wc& wc, rpc::Buffer& buffer) {
  const OnlyMessage<FrameKind::kData, kBeside> frame(TagOf(wc),
                                                     BytesOf(buffer));
  if (ABSL_PREDICT_FALSE(!Takes(frame))) return false;
  Call* const call = slots_[frame.slot()];
  if (ABSL_PREDICT_FALSE(call == nullptr ||
                         call->sequence != frame.call_sequence() ||
                         (call->received_end | call->busy | call->queued) ||
                         !call->inbox.empty() || frame.detail() != 0)) {
    return false;
  }
  Account(frame.credits());
  call->received_end = true;
  DetachClientCall(*call);
  delivery_->CloseAfterLastFrame(*call);
  buffer.remove_prefix(frame.kFrontBytes);
  ReceivePool& pool = poller_->receive_pool();
  // While the callback runs this connection may go, also where the turnstile is
  // held again afterwards.
  if (ABSL_PREDICT_TRUE(delivery_->DeliverOnlyMessage<kBeside>(
          *call, buffer, frame.message_bytes())) &&
      ABSL_PREDICT_TRUE(buffer.block() != nullptr)) {
    pool.PutBack(std::move(buffer));
  }
  return true;
}

void Connection::OnRequest(const ibv_wc& wc) {
  rpc::Buffer buffer = poller_->receive_pool().Take(wc.wr_id, wc.byte_len);
  if (ABSL_PREDICT_FALSE(!TakeRequest<Beside::kNothing>(wc, buffer))) {
    OnRequestBeside(wc, rpc::Buffer(std::move(buffer)));
  }
}

ABSL_ATTRIBUTE_NOINLINE void Connection::OnRequestBeside(const ibv_wc& wc,
                                                         rpc::Buffer&& buffer) {
  if (!TakeRequest<Beside::kAttachment>(wc, buffer)) {
    OnAnyFrame(wc, std::move(buffer));
  }
}

template <Beside kBeside>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::TakeRequest(
    const ibv_wc& wc, rpc::Buffer& buffer) {
  const OnlyMessage<FrameKind::kOpen, kBeside> frame(TagOf(wc),
                                                     BytesOf(buffer));
  if (ABSL_PREDICT_FALSE(!Takes(frame) || slots_[frame.slot()] != nullptr ||
                         frame.detail() >= methods_.size())) {
    return false;
  }
  Account(frame.credits());
  Call* const call = CreateServerCall(frame.detail(), frame.call_sequence());
  AttachCallTo(*call, frame.slot());
  call->received_end = true;
  if (const uint64_t timeout_us = frame.timeout_us(); timeout_us != 0) {
    SetTimeout(*call, timeout_us);
  }
  buffer.remove_prefix(frame.kFrontBytes);
  rpc::IncomingFrame incoming = IncomingOf<kBeside>(
      std::move(buffer), frame.message_bytes(), frame.detail());
  delivery_->DeliverOpenInLine(*call, incoming);
  return true;
}

template <FrameKind kKind, Beside kBeside>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::Takes(
    const OnlyMessage<kKind, kBeside>& frame) {
  assert(!is_plain_ || IsPlain());
  return ABSL_PREDICT_TRUE(
      (is_plain_ || TakesUnplain()) && frame.is_one() &&
      frame.message_bytes() <= options_.max_receive_message_bytes &&
      (kBeside == Beside::kNothing ||
       frame.attachment_bytes() <= options_.max_receive_attachment_bytes) &&
      receive_credits_.outstanding() != 0 &&
      send_credits_.CanAdd(frame.credits()) &&
      !poller_->receive_pool().IsTight() && !poller_->callbacks_wait() &&
      frame.slot() < slots_.size());
}

// What waits here goes on with the credits that a frame may bring. An answer
// may say done for what its request offered.
ABSL_ATTRIBUTE_NOINLINE bool Connection::TakesUnplain() {
  is_plain_ = IsPlain();
  if (state_ != State::kUp || (is_client_ && !offers_.empty()) ||
      refusing_calls_ || !close_when_flushed_.ok()) {
    return false;
  }
  if (!queue_.empty()) poller_->MarkDirty(this);
  return true;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Connection::Account(uint32_t credits) {
  ++received_frames_;
  (void)receive_credits_.Consume();
  (void)send_credits_.Add(credits);
  ArmShrinkTimer();
  if (receive_credits_.ShouldGrantNow()) poller_->MarkDirty(this);
  poller_->counters().eager_messages_received.Add(1);
}

// Sees to what the frame that came leaves to do.
void Connection::AfterReceive() {
  ArmShrinkTimer();
  if (!queue_.empty() || receive_credits_.ShouldGrantNow() ||
      !close_when_flushed_.ok()) {
    poller_->MarkDirty(this);
  }
}

ABSL_ATTRIBUTE_NOINLINE void Connection::OnAnyFrame(const ibv_wc& wc,
                                                    rpc::Buffer&& buffer) {
  if (state_ != State::kUp) {
    if (state_ == State::kConnecting) OnEarlyFrame(wc, std::move(buffer));
    return;
  }
  if (poller_->receive_pool().IsTight()) {
    buffer = rpc::Buffer::CopyOf(buffer.view());
  }
  uint32_t tag = 0;
  uint32_t invalidated_rkey = 0;
  absl::Span<const std::byte> payload = BytesOf(buffer);
  if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0) {
    tag = ntohl(wc.imm_data);
  } else {
    if (payload.size() < kTagBytes) return ProtocolError("a frame cut short");
    std::memcpy(&tag, payload.data(), sizeof(tag));
    payload.remove_prefix(kTagBytes);
    if ((wc.wc_flags & invalidation_flags_) != 0) {
      invalidated_rkey = wc.invalidated_rkey;
    }
  }
  FrameView view;
  if (!DecodePlainFrame(tag, payload, &view)) [[unlikely]] {
    if (const char* wrong = DecodeFrame(tag, payload, &view)) {
      return ProtocolError(wrong);
    }
  }
  ++received_frames_;
  if (!receive_credits_.Consume())
    return ProtocolError("more frames than granted");
  if (!send_credits_.Add(view.fields.credits)) {
    return ProtocolError("more credits than there can be");
  }
  if (view.has(kWantCredits)) OnWantCredits();
  AfterReceive();

  switch (view.fields.kind) {
    case FrameKind::kOpen:
      return OnOpen(view, std::move(buffer));
    case FrameKind::kData:
      return OnData(view, std::move(buffer), invalidated_rkey);
    case FrameKind::kReset:
      return OnReset(view);
    case FrameKind::kDone:
      return AnswerOffer({view.fields.slot, view.fields.call_sequence},
                         invalidated_rkey, /*all=*/false);
    case FrameKind::kCredit:
      return OnCredit(view);
    case FrameKind::kWindow:
      return OnWindow(view);
    case FrameKind::kGoAway:
      return OnGoAway(view);
    case FrameKind::kPart:
      return OnPart(view);
  }
}

void Connection::OnGoAway(const FrameView& view) {
  if (!is_client_) return ProtocolError("a client that goes away");
  owner_->OnGoAway(*this);
  if (view.has(kNotRun)) EndNotRun(view.fields.call_sequence);
}

inline bool Connection::CheckEagerLimits(const FrameView& view, Call& call) {
  if (view.message.size() <= options_.max_receive_message_bytes &&
      view.attachment.size() <= options_.max_receive_attachment_bytes) {
    return true;
  }
  RefuseEager(view, call);
  return false;
}

void Connection::RefuseEager(const FrameView& view, Call& call) {
  absl::Status status;
  if (view.message.size() > options_.max_receive_message_bytes) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("Received message larger than max (", view.message.size(),
                     " vs. ", options_.max_receive_message_bytes, ")"));
  } else {
    status = absl::ResourceExhaustedError(absl::StrCat(
        "Received attachment larger than max (", view.attachment.size(),
        " vs. ", options_.max_receive_attachment_bytes, ")"));
  }
  ResetCall(call, status, /*not_run=*/view.fields.kind == FrameKind::kOpen);
}

// ---- Server.

inline const char* Connection::DefineMethod(const FrameView& view) {
  const uint32_t number = view.fields.detail;
  if (view.has(kMethodDefinition)) {
    if (number != methods_.size()) return "a method number out of order";
    if (!method_limit_.HasRoom(view.fields.method_path)) {
      return "too many methods";
    }
    method_limit_.Add(view.fields.method_path);
    ServerMethod& method =
        *methods_.emplace_back(std::make_unique<ServerMethod>());
    method.path = std::string(view.fields.method_path);
    method.token = owner_->OnMethod(method.path);
    return nullptr;
  }
  return number < methods_.size() ? nullptr : "an undefined method number";
}

inline Call* Connection::CreateServerCall(uint32_t method_number,
                                          uint32_t sequence) {
  Call* const call = poller_->calls().Create();
  call->owner = owner_;
  call->sequence = last_opened_ = sequence;
  call->deadline = rpc::kNoDeadline;
  call->method = methods_[method_number].get();
  call->open_sent = true;
  return call;
}

void Connection::SetTimeout(Call& call, uint64_t timeout_us) {
  // A deadline beyond some centuries is none.
  constexpr uint64_t kLongestUs = uint64_t{1} << 53;
  const auto timeout = absl::Microseconds(
      static_cast<int64_t>(std::min(timeout_us, kLongestUs)));
  const int64_t now_ns = Poller::NowNs();
  call.deadline =
      absl::FromUnixNanos(poller_->wall_clock().UnixNs(now_ns)) + timeout;
  poller_->Schedule(&call, now_ns + std::min(absl::ToInt64Nanoseconds(timeout),
                                             Poller::kLongestTimerNs));
}

void Connection::OnOpen(const FrameView& view, rpc::Buffer&& buffer) {
  if (is_client_) return ProtocolError("a server that opens a call");
  if (const char* wrong = DefineMethod(view)) return ProtocolError(wrong);
  if (view.fields.slot >= kMaxCalls) {
    return ProtocolError("a slot beyond the agreed number of calls");
  }
  if (view.fields.slot < slots_.size() && slots_[view.fields.slot] != nullptr) {
    return ProtocolError("a slot that is in use");
  }
  Call* const call =
      CreateServerCall(view.fields.detail, view.fields.call_sequence);
  AttachCall(*call, view.fields.slot);
  call->received_end = view.has(kEnd);
  if (view.fields.timeout_us != 0) SetTimeout(*call, view.fields.timeout_us);
  if (refusing_calls_) {
    // After the last word there is nothing to be said.
    if (last_word_said_) return CloseQuietly(*call);
    ResetCall(*call, absl::UnavailableError("the server is shutting down"),
              /*not_run=*/true);
    if (view.has_offer()) RefuseOfferOf(view);
    return;
  }
  if (!view.has(kEnd) && !TakeWindow(view, *call)) return;
  if (view.has_offer()) {
    return StartRead(view, std::move(buffer), *call, /*opens=*/true);
  }
  if (CheckEagerLimits(view, *call)) {
    Deliver(*call, view, std::move(buffer), /*opens=*/true);
  }
}

// ---- Either side.

Call* Connection::FindCall(const FrameView& view) {
  if (view.fields.slot >= slots_.size()) return nullptr;
  Call* const call = slots_[view.fields.slot];
  return call != nullptr && call->sequence == view.fields.call_sequence
             ? call
             : nullptr;
}

void Connection::OnData(const FrameView& view, rpc::Buffer&& buffer,
                        uint32_t invalidated_rkey) {
  const bool ends_call = is_client_ && view.has(kEnd);
  if (ends_call && !offers_.empty()) {
    // A response says done for its request, also where nobody waits for it.
    AnswerOffer({view.fields.slot, view.fields.call_sequence}, invalidated_rkey,
                /*all=*/true);
  }
  Call* const call = FindCall(view);
  // A server's end may wait for something that is being read: see SendData.
  const bool is_over =
      call == nullptr || call->received_end || (!is_client_ && call->sent_end);
  if (is_over) {
    if (view.has_offer()) RefuseOfferOf(view);
    return;
  }
  if (!view.has(kEnd) && !TakeWindow(view, *call)) return;
  call->received_end = view.has(kEnd);
  if (view.has_offer()) {
    return StartRead(view, std::move(buffer), *call, /*opens=*/false);
  }
  if (!CheckEagerLimits(view, *call)) return;
  // Also closes it, but for its last callbacks.
  if (ends_call && !call->busy && call->inbox.empty()) FinishCall(*call);
  Deliver(*call, view, std::move(buffer), /*opens=*/false);
}

// The frame's parts stay where they were received. The last action: a callback
// may follow.
void Connection::Deliver(Call& call, const FrameView& view,
                         rpc::Buffer&& buffer, bool opens) {
  rpc::IncomingFrame frame;
  frame.header = view.header;
  frame.has_message = view.has(kHasMessage);
  frame.end = view.has(kEnd);
  frame.status_code = view.fields.detail;
  if (!frame.end) {
    frame.window_bytes = static_cast<uint64_t>(view.WindowBytes());
  }
  if (!view.attachment.empty()) {
    frame.attachment = rpc::BufferChain(buffer.Slice(
        static_cast<size_t>(view.attachment.data() - buffer.data()),
        view.attachment.size()));
  }
  if (!view.message.empty()) {
    const auto offset =
        static_cast<size_t>(view.message.data() - buffer.data());
    if (view.header.empty()) {
      // The usual case moves the one reference on.
      buffer.remove_suffix(buffer.size() - offset - view.message.size());
      buffer.remove_prefix(offset);
      frame.message.Append(std::move(buffer));
    } else {
      frame.message.Append(buffer.Slice(offset, view.message.size()));
    }
  }
  poller_->counters().eager_messages_received.Add(1);
  if (poller_->callbacks_wait() && !call.quick_sink) [[unlikely]] {
    delivery_->Keep(call, frame, opens);
  } else if (opens) {
    delivery_->DeliverOpen(call, frame);
  } else if (call.closed && !call.queued) {
    delivery_->DeliverLast(call, frame);
  } else {
    delivery_->DeliverOrHold(call, frame);
  }
}

void Connection::OnReset(const FrameView& view) {
  Call* const call = FindCall(view);
  if (call == nullptr) return;
  if (call->owes_done) SendDone(*call);
  AbandonReads(call->handle);
  ExpireOffers({call->slot, call->sequence}, /*wanted=*/false);
  DetachCall(*call);
  const bool not_run = view.has(kNotRun);
  if (is_client_ && not_run) call->open_sent = false;
  delivery_->Close(*call, {ResetStatus(view), !not_run});
}

void Connection::SendDone(Call& call) {
  call.owes_done = false;
  SendControl(FrameKind::kDone, {call.slot, call.sequence}, 0, {}, 0,
              call.done_rkey);
}

// ---- A stream's window.

bool Connection::TakeWindow(const FrameView& view, Call& call) {
  if (call.receive_window <= 0) {
    ResetCall(call, absl::InternalError(
                        "the peer sent more than the stream's window"));
    if (view.has_offer()) RefuseOfferOf(view);
    return false;
  }
  call.receive_window -= view.WindowBytes();
  if (view.fields.kind == FrameKind::kData && view.has(kWantWindow)) {
    call.window_is_wanted = true;
  }
  return true;
}

void Connection::OnWindow(const FrameView& view) {
  Call* const call = FindCall(view);
  if (call == nullptr) return;
  call->send_window += view.fields.detail;
  if (call->send_window > kMostWindow) {
    return ProtocolError("a larger window than there can be");
  }
  SendHeldBack(*call);
}

void Connection::Release(Call& call, uint64_t window_bytes, bool drained) {
  if (call.connection != this || call.received_end) return;
  auto grant = static_cast<int64_t>(window_bytes);
  // The reader is faster than the window lets the peer be; not so where frames
  // wait for its callbacks.
  if (drained && call.inbox.empty() &&
      std::exchange(call.window_is_wanted, false)) {
    const int64_t extra =
        std::min(call.window_size, kMaxStreamWindow - call.window_size);
    call.window_size += extra;
    grant += extra;
  }
  call.receive_window += grant;
  GrantStreamWindow(call, grant);
}

// ---- Credits.

void Connection::OnCredit(const FrameView& view) {
  ++received_credit_frames_;
  if (view.has(kWantAnswer)) {
    answer_due_ = true;
    poller_->MarkDirty(this);
  }
  const uint32_t given_back = view.fields.detail;
  if (given_back == 0) return;
  if (!receive_credits_.TakeBack(given_back, kInitialWindow)) {
    return ProtocolError("more credits given back than granted");
  }
  // Fewer can always be had.
  SetExtraReceives(receive_credits_.window() - kInitialWindow).IgnoreError();
}

// The peer was held up: twice the window, up to this connection's share of what
// windows may grow into; or less of it, where it has more than that.
void Connection::OnWantCredits() {
  const uint32_t extra = receive_credits_.window() - kInitialWindow;
  const uint32_t wanted =
      std::min(2 * extra + kInitialWindow, kMaxWindow - kInitialWindow);
  const uint32_t unused = std::min<uint32_t>(extra, receive_credits_.Owed());
  const uint32_t next =
      poller_->receive_pool().NextExtra(extra, wanted, unused);
  if (next == extra || !SetExtraReceives(next).ok()) return;
  receive_credits_.SetWindow(kInitialWindow + next);
  poller_->MarkDirty(this);
}

// Whether the connection has more than it would have from the start.
bool Connection::HasSurplus() const {
  return send_credits_.held() > peer_initial_credits_ ||
         send_queue_.depth() > kIdleSendSlots || queue_.has_spares() ||
         fronts_.has_memory();
}

void Connection::ArmShrinkTimer() {
  if (!shrink_timer_.scheduled() && state_ == State::kUp && HasSurplus()) {
    poller_->Schedule(&shrink_timer_, Poller::NowNs() + kShrinkAfterNs);
  }
}

// Returns what is not needed: at once what an idle connection has, half at a
// time the credits of a less busy one.
void Connection::OnShrinkTimer() {
  if (state_ != State::kUp) return;
  const bool idle = std::exchange(shrink_frames_, frames()) == frames();
  uint32_t given = 0;
  if (queue_.empty()) {
    given = idle ? send_credits_.GiveBack(peer_initial_credits_)
                 : send_credits_.GiveBackUnused(peer_initial_credits_);
  }
  if (idle) {
    GiveBackCompletions();
    fronts_.GiveBackMemory();
  }
  if (queue_.empty() && !std::exchange(queued_lately_, false)) {
    queue_.FreeSpares();
  }
  // Of an idle one, the frame also tells that all before it has completed.
  const bool settle = idle && send_queue_.ends_unsignaled() &&
                      send_queue_.depth() > kIdleSendSlots;
  if (given > 0 || settle) {
    Outgoing out;
    out.fields.kind = FrameKind::kCredit;
    out.fields.detail = given;
    out.signaled = idle;
    Submit(out);
    shrink_frames_ = frames();  // no sign of being busy
  }
  ArmShrinkTimer();
}

}  // namespace rdma
