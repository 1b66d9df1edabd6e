// The calls of a connection: opening them, sending their frames as far as
// windows allow, and ending them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "rdma_transport/call_sending.h"
#include "rdma_transport/connection.h"

namespace rdma {
namespace {

constexpr char kShuttingDown[] = "the server is shutting down";

}  // namespace

// As FrameView::WindowBytes has it.
int64_t Connection::WindowBytesOf(const rpc::OutgoingFrame& frame) {
  return kFrameWindow +
         static_cast<int64_t>(frame.header.size() + frame.small_message.size() +
                              frame.message.size() + frame.attachment.size());
}

std::byte* Connection::Gather(const rpc::OutgoingFrame& frame, std::byte* to) {
  for (const auto& part : {frame.header, frame.small_message}) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  return to;
}

ABSL_ATTRIBUTE_NOINLINE void Connection::TakeBuffers(rpc::OutgoingFrame& frame,
                                                     std::byte* to) {
  for (rpc::BufferChain* chain : {&frame.message, &frame.attachment}) {
    chain->CopyTo(to);
    to += chain->size();
    chain->clear();
  }
}

void Connection::AddSlots(size_t count) { slots_.resize(count, nullptr); }

void Connection::OpenCall(Call& call, rpc::OutgoingFrame& frame) {
  OpenCallInLine(call, frame);
}

ABSL_ATTRIBUTE_NOINLINE void Connection::SendOpening(
    Call& call, rpc::OutgoingFrame& frame) {
  const bool more_follow = !frame.end;
  if (more_follow) call.send_window -= WindowBytesOf(frame);
  // Where others wait, either would find that out anew.
  bool sent = MaySendAtOnce() &&
              (SendAtOnce<Extent::kAny>(FrameKind::kOpen, call, frame) ||
               SendRegistered(FrameKind::kOpen, call, frame));
  if (!sent) {
    Outgoing out;
    out.fields.kind = FrameKind::kOpen;
    out.fields.method_path = owner_->PathOf(call.method_index);
    out.method_index = call.method_index;
    out.deadline = call.deadline;
    sent = SendFrame(call, frame, out);
  }
  if (sent && more_follow) NotifySent(call.handle);
  if (call.held_back != nullptr) SendHeldBack(call);
}

ABSL_ATTRIBUTE_NOINLINE bool Connection::SendAnyData(
    Call& call, rpc::OutgoingFrame& frame) {
  if (call.sent_end) return false;
  if ((call.send_window <= 0 || !is_plain_) && !MaySend(call, frame)) {
    return false;
  }
  return SendNow(call, frame);
}

bool Connection::SendNow(Call& call, rpc::OutgoingFrame& frame) {
  if (!frame.end) call.send_window -= WindowBytesOf(frame);
  const bool sent = SendAtOnce<Extent::kAny>(FrameKind::kData, call, frame) ||
                    SendSlowly(call, frame);
  if (frame.end && !is_client_ && call.connection == this) AfterAnswer(call);
  return sent;
}

ABSL_ATTRIBUTE_NOINLINE bool Connection::SendSlowly(Call& call,
                                                    rpc::OutgoingFrame& frame) {
  if (SendRegistered(FrameKind::kData, call, frame)) return true;
  Outgoing out;
  out.fields.kind = FrameKind::kData;
  out.fields.detail = frame.status_code;
  if (frame.end && !is_client_ && call.owes_done) {
    // The answer says done for the request.
    call.owes_done = false;
    out.says_done = true;
    out.invalidate_rkey = call.done_rkey;
  }
  return SendFrame(call, frame, out);
}

bool Connection::IsPlain() const {
  return state_ == State::kUp && !starved_ && queue_.empty() &&
         offers_.empty() && reads_.empty() && waiting_reads_.empty() &&
         close_when_flushed_.ok() && !refusing_calls_;
}

ABSL_ATTRIBUTE_NOINLINE bool Connection::MaySendUnplain() {
  is_plain_ = IsPlain();
  return state_ == State::kUp && !starved_ && queue_.empty();
}

// Of one whose client has not sent everything, or may still read.
ABSL_ATTRIBUTE_NOINLINE void Connection::EndAnswered(const Call& call) {
  if (!call.received_end) {
    answered_early_.resize(slots_.size());
    answered_early_[call.slot] = call.sequence;
  }
  if (!offers_.empty()) {
    ExpireOffers({call.slot, call.sequence}, /*wanted=*/true);
  }
}

// False: it waits. Where frames are held back, there is no window; see
// SendHeldBack.
ABSL_ATTRIBUTE_NOINLINE bool Connection::MaySend(Call& call,
                                                 rpc::OutgoingFrame& frame) {
  if (call.send_window <= 0) {
    const bool needs_window =
        !frame.end || frame.has_message || !frame.attachment.empty();
    if (needs_window || call.held_back != nullptr) {
      call.was_held_back = true;
      call.HoldBack(frame);
      return false;
    }
  }
  if (frame.end && IsReadingFor(call)) {
    call.HoldBack(frame);
    AbandonReads(call.handle);
    return false;
  }
  return true;
}

bool Connection::SendData(Call& call, rpc::OutgoingFrame& frame) {
  return call.connection == this && SendDataInLine(call, frame);
}

void Connection::SendHeldBack(Call& call) {
  while (call.held_back != nullptr && call.send_window > 0 &&
         call.connection == this) {
    OwnedFrame& frame = call.held_back->front();
    const bool last = frame.get().end;
    if (last && IsReadingFor(call)) return AbandonReads(call.handle);
    if (SendNow(call, frame.get()) && !last) NotifySent(call.handle);
    call.held_back->pop_front();
    if (call.held_back->empty()) call.held_back.reset();
  }
}

// ---- What the peer may send.

// A peer that withholds credits, and goes on sending, must not have window
// frames pile up here: those of a call become one.
void Connection::GrantStreamWindow(const Call& call, int64_t bytes) {
  while (bytes > 0 && queue_.empty() && CanSendNow()) {
    const auto part =
        static_cast<uint32_t>(std::min<int64_t>(bytes, UINT32_MAX));
    SendWindow({call.slot, call.sequence}, part);
    bytes -= part;
  }
  if (bytes <= 0 || state_ != State::kUp) return;
  if (due_windows_.empty()) {
    if (!send_credits_.CanSend()) starved_ = true;
    is_plain_ = false;
    Outgoing window;
    window.fields.kind = FrameKind::kWindow;
    queue_.Push().out = std::move(window);
  }
  due_windows_[call.handle.value] += static_cast<uint64_t>(bytes);
  if (due_windows_.size() > 2 * live_calls_) ForgetDueWindowsOfGoneCalls();
}

void Connection::SendWindow(const OfferKey& key, uint32_t bytes) {
  Outgoing out;
  out.fields.kind = FrameKind::kWindow;
  out.fields.slot = key.slot;
  out.fields.call_sequence = key.call_sequence;
  out.fields.detail = bytes;
  (void)Post(out);  // of a frame this small, with room for it
}

// In turns, so that a few credits at a time serve all calls.
bool Connection::SendDueWindows() {
  while (!due_windows_.empty()) {
    if (!CanSendNow()) {
      if (!send_credits_.CanSend()) starved_ = true;
      is_plain_ = false;
      return false;
    }
    auto due = due_windows_.upper_bound(last_due_window_);
    if (due == due_windows_.end()) due = due_windows_.begin();
    last_due_window_ = due->first;
    const Call* const call = poller_->calls().Find({due->first});
    const bool gone = call == nullptr || call->connection != this;
    const auto part =
        static_cast<uint32_t>(std::min<uint64_t>(due->second, UINT32_MAX));
    due->second -= part;
    if (gone || due->second == 0) due_windows_.erase(due);
    if (!gone) SendWindow({call->slot, call->sequence}, part);
  }
  return state_ == State::kUp;
}

void Connection::ForgetDueWindowsOfGoneCalls() {
  std::erase_if(due_windows_, [this](const auto& due) {
    const Call* const call = poller_->calls().Find({due.first});
    return call == nullptr || call->connection != this;
  });
}

bool Connection::SendFrame(Call& call, rpc::OutgoingFrame& frame,
                           Outgoing& out) {
  const bool wants_window = std::exchange(call.was_held_back, false);
  out.fields.slot = call.slot;
  out.fields.call_sequence = call.sequence;
  out.fields.flags = (frame.end ? kEnd : 0) |
                     (frame.has_message ? kHasMessage : 0) |
                     (wants_window ? kWantWindow : 0);
  out.header = frame.header;
  out.small_message = frame.small_message;
  out.message = std::move(frame.message);
  out.growing =
      std::static_pointer_cast<GrowingMessage>(std::move(frame.growing));
  out.attachment = std::move(frame.attachment);
  out.call = call.handle;
  out.notify_sent = !frame.end;
  call.sent_end = frame.end;
  return Submit(out);
}

void Connection::ResetCall(Call& call, const absl::Status& why, bool not_run) {
  if (call.connection != this) return;
  const bool peer_knows = !is_client_ || call.open_sent;
  // Nor if what opened it is still being read, parsed meanwhile or not.
  if (!is_client_ && call.sink == nullptr && (!call.busy || call.is_arriving)) {
    not_run = true;
  }
  if (call.owes_done) SendDone(call);
  AbandonReads(call.handle);
  ExpireOffers({call.slot, call.sequence}, /*wanted=*/false);
  if (peer_knows) {
    SendControl(FrameKind::kReset, {call.slot, call.sequence},
                static_cast<uint32_t>(why.code()), std::string(why.message()),
                not_run && !is_client_ ? kNotRun : 0);
  } else {
    // What it wanted to send is still here.
    queue_.RemoveIf([&call](const QueuedFrame& queued) {
      return queued.out.call == call.handle;
    });
  }
  DetachCall(call);
  delivery_->Close(call, {why, peer_knows});
}

// ---- The last calls.

void Connection::SendGoAway() {
  if (std::exchange(going_away_, true)) return;
  SendControl(FrameKind::kGoAway, {}, 0);
}

void Connection::RefuseCalls() {
  refusing_calls_ = true;
  is_plain_ = false;
  SendGoAway();
}

void Connection::EndCalls(const absl::Status& why) {
  RefuseCalls();
  // There are no slots any more where one fails to be told.
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] != nullptr) ResetCall(*slots_[slot], why);
  }
}

// A server's call that came after the last word.
void Connection::CloseQuietly(Call& call) {
  DetachCall(call);
  delivery_->Close(call, {absl::UnavailableError(kShuttingDown), false});
}

// The last word: the server has seen no call that was opened after `last_run`.
// Those are the ones that it has not answered, and those that wait here still.
// The last of them to go may take the connection along.
void Connection::EndNotRun(uint32_t last_run) {
  queue_.RemoveIf([](const QueuedFrame& queued) {
    return queued.out.fields.kind == FrameKind::kOpen;
  });
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    Call* const call = slots_[slot];
    if (call == nullptr ||
        static_cast<int32_t>(call->sequence - last_run) <= 0) {
      continue;
    }
    call->open_sent = false;
    AbandonReads(call->handle);
    ExpireOffers({call->slot, call->sequence}, /*wanted=*/false);
    DetachCall(*call);
    delivery_->Close(*call, {absl::UnavailableError(kShuttingDown), false});
  }
}

}  // namespace rdma
