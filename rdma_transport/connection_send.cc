// Sending frames: when, and from which memory.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/call_sending.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rdma_transport/wall_clock.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// Fewer bytes are copied beside their front, which costs less than the device's
// going through both.
constexpr size_t kFewestGathered = 2048;
// What a reset's text may take of a frame: such frames go inline.
constexpr size_t kMaxResetText = 192;

absl::Span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::byte* Append(std::byte* to, absl::Span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

std::byte* Append(std::byte* to, const rpc::BufferChain& chain) {
  chain.CopyTo(to);
  return to + chain.size();
}

}  // namespace

bool Connection::Submit(Outgoing& out) {
  if (state_ != State::kUp) return false;
  if (queue_.empty() && send_credits_.CanSend()) {
    const absl::StatusOr<PostResult> result = Post(out);
    if (!result.ok()) {
      FailFrame(out, result.status());
      return false;
    }
    // An offer tells later.
    if (*result == PostResult::kPosted) return out.notify_sent;
  } else if (!send_credits_.CanSend()) {
    starved_ = true;
    is_plain_ = false;
  }
  Queue(out);
  return false;
}

void Connection::NotifySent(rpc::CallHandle handle) {
  Call* const call = poller_->calls().Find(handle);
  if (call != nullptr && call->connection == this) delivery_->Sent(*call);
}

void Connection::Queue(Outgoing& out) {
  is_plain_ = false;
  queued_lately_ = true;
  QueuedFrame& queued = queue_.Push();
  const size_t header_bytes = out.header.size();
  const size_t message_bytes = out.small_message.size();
  queued.borrowed.resize(header_bytes + message_bytes);
  std::byte* const header = queued.borrowed.data();
  std::byte* const message = Append(header, out.header);
  Append(message, out.small_message);
  queued.out = std::move(out);
  queued.out.header = absl::MakeConstSpan(header, header_bytes);
  queued.out.small_message = absl::MakeConstSpan(message, message_bytes);
}

// A client's message for a call that the server has answered: it would not say
// done for what is offered.
bool Connection::IsPointless(const Outgoing& out) const {
  if (!is_client_ || out.fields.kind != FrameKind::kData) return false;
  const Call* const call = poller_->calls().Find(out.call);
  return call == nullptr || call->connection != this;
}

void Connection::FlushQueue() {
  while (!queue_.empty()) {
    if (!send_credits_.CanSend()) {
      starved_ = true;
      is_plain_ = false;
      return LeaveQueued();
    }
    if (!HasSendRoom(1)) return LeaveQueued();
    Outgoing& out = queue_.front().out;
    if (out.fields.kind == FrameKind::kWindow) {
      if (!SendDueWindows()) return;
      queue_.Pop();
      continue;
    }
    if (IsPointless(out)) {
      queue_.Pop();
      continue;
    }
    const absl::StatusOr<PostResult> result = Post(out);
    if (state_ != State::kUp) return;  // closed, and with it the queue cleared
    if (!result.ok()) {
      const QueuedFrame failed = std::move(queue_.front());
      queue_.Pop();
      FailFrame(failed.out, result.status());
    } else if (*result == PostResult::kBlocked) {
      return LeaveQueued();
    } else {
      const rpc::CallHandle sent =
          out.notify_sent ? out.call : rpc::CallHandle{};
      queue_.Pop();
      if (sent) NotifySent(sent);
    }
    if (state_ != State::kUp) return;
  }
}

// Calls that are over are not counted, but what is left to be said of them is:
// a peer that withholds credits, and goes on opening calls, or offering what
// nobody wants, is owed ever more.
void Connection::LeaveQueued() {
  if (queue_.size() <= kMostWaitingFrames) return;
  const absl::Status why = absl::UnavailableError(
      absl::StrCat("the peer ", peer_name_, " does not take what it is sent: ",
                   queue_.size(), " frames wait for it"));
  rpc::Log(rpc::LogLevel::kWarning, std::string(why.message()));
  Close(why);
}

void Connection::Flush() {
  if (state_ != State::kUp) return;
  PostInvalidations();
  FlushQueue();
  if (state_ != State::kUp) return;
  if (!waiting_reads_.empty() &&
      poller_->messages_being_read().IsTurnOf(this)) {
    RetryWaitingReads();
    if (state_ != State::kUp) return;
  }
  PumpReads();
  if (state_ != State::kUp) return;
  SendCreditsIfDue();
  if (poller_->CompletionsAreWanted()) GiveBackCompletions();
  if (!close_when_flushed_.ok() && state_ == State::kUp) CloseIfFlushed();
}

// The frame's call cannot go on: what it had to say cannot be said.
void Connection::FailFrame(const Outgoing& out, const absl::Status& why) {
  const OfferKey key = {out.fields.slot, out.fields.call_sequence};
  if (out.says_done) {
    SendControl(FrameKind::kDone, key, 0, {}, 0, out.invalidate_rkey);
  }
  if (Call* const call = poller_->calls().Find(out.call)) {
    if (call->connection == this) {
      ResetCall(*call, why);
      return;
    }
  }
  // A server's last frame, or a part of its message: the call has ended here
  // already, but not there.
  if (out.fields.kind == FrameKind::kData ||
      out.fields.kind == FrameKind::kPart) {
    SendControl(FrameKind::kReset, key, static_cast<uint32_t>(why.code()),
                std::string(why.message()));
  }
}

absl::StatusOr<Connection::PostResult> Connection::Post(Outgoing& out) {
  FrameFields& fields = out.fields;
  if (fields.kind == FrameKind::kOpen) {
    if (absl::Status status = PrepareOpen(out); !status.ok()) return status;
  }
  if (starved_) fields.flags |= kWantCredits;
  if (fields.kind == FrameKind::kPart) return PostPart(out);
  fields.header_bytes = static_cast<uint32_t>(out.header.size());
  const uint64_t frame_bytes = out.prefix_bytes() + out.header.size() +
                               out.message_bytes() + out.attachment.size();
  const bool has_body = out.message_bytes() > 0 || !out.attachment.empty();
  if (frame_bytes <= (has_body ? eager_limit_ : frame_limit_)) {
    return PostEager(out, frame_bytes);
  }
  return PostOffer(out);
}

// What can only be said at the time of sending: how much time is left, and
// whether the peer knows the method by number.
absl::Status Connection::PrepareOpen(Outgoing& out) {
  if (out.method_index >= method_numbers_.size()) {
    method_numbers_.resize(out.method_index + 1);
  }
  const uint32_t known = method_numbers_[out.method_index];
  if (known != 0) {
    out.fields.detail = known - 1;
    out.fields.flags &= static_cast<uint8_t>(~kMethodDefinition);
  } else {
    const size_t path_bytes = out.fields.method_path.size();
    if (path_bytes == 0 || path_bytes > kMaxPathBytes) {
      return absl::UnimplementedError(
          absl::StrCat("no server has a method with a path of ", path_bytes,
                       " bytes: it is 1 to ", kMaxPathBytes));
    }
    if (!method_limit_.HasRoom(out.fields.method_path)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the connection to ", peer_name_, " carries at most ",
                       MethodLimit::kMaxMethods, " methods, of together ",
                       MethodLimit::kMaxBytes, " bytes of paths"));
    }
    out.fields.detail = next_method_number_;
    out.fields.flags |= kMethodDefinition;
  }
  out.fields.timeout_us = out.deadline == absl::InfiniteFuture()
                              ? 0
                              : TimeoutUs(NsUntil(out.deadline));
  return absl::OkStatus();
}

// ---- Eager frames.

absl::StatusOr<Connection::PostResult> Connection::PostEager(
    Outgoing& out, size_t frame_bytes) {
  if (!HasSendRoom(1)) return PostResult::kBlocked;
  out.fields.message_bytes = static_cast<uint32_t>(out.message_bytes());
  const size_t front_bytes = out.prefix_bytes() + out.header.size();

  if (frame_bytes <= inline_limit_) {
    std::byte scratch[kMaxInlineBytes];
    std::byte* at = WriteFront(out, scratch);
    at = Append(at, out.small_message);
    at = Append(at, out.message);
    Append(at, out.attachment);
    const ibv_sge sge = {reinterpret_cast<uint64_t>(scratch),
                         static_cast<uint32_t>(frame_bytes), 0};
    PostSend(out, &sge, 1, /*is_inline=*/true, nullptr);
    AfterPost(out);
    return PostResult::kPosted;
  }

  ibv_sge sge;
  SendEntry holds;
  if (GatherInPlace(out, front_bytes, &sge, &holds)) {
    PostSend(out, &sge, 1, /*is_inline=*/false, &holds);
    AfterPost(out);
    return PostResult::kPosted;
  }
  absl::StatusOr<rpc::Buffer> buffer =
      poller_->context().memory().Allocate(frame_bytes);
  if (!buffer.ok()) return buffer.status();
  std::byte* at = WriteFront(out, buffer->mutable_data());
  at = Append(at, out.small_message);
  at = Append(at, out.message);
  Append(at, out.attachment);
  sge = {reinterpret_cast<uint64_t>(buffer->data()),
         static_cast<uint32_t>(frame_bytes), RegisteredMemory::LkeyOf(*buffer)};
  holds.buffers.Append(*std::move(buffer));
  PostSend(out, &sge, 1, /*is_inline=*/false, &holds);
  AfterPost(out);
  return PostResult::kPosted;
}

// What SendAtOnce does, for a frame that is too large for it. The bytes are
// sent from where they are, where that is one buffer of ours: with everything
// else written in front of it, or in a front beside it. Else they are copied
// into one. False: not so, and nothing happened.
bool Connection::SendRegistered(FrameKind kind, Call& call,
                                rpc::OutgoingFrame& frame) {
  const size_t prefix_bytes = FrontBytes(kind);
  const size_t front_bytes =
      prefix_bytes + frame.header.size() + frame.small_message.size();
  const size_t message_bytes =
      frame.small_message.size() + frame.message.size();
  const size_t frame_bytes =
      front_bytes + frame.message.size() + frame.attachment.size();
  if (frame_bytes > eager_limit_ || frame_bytes <= inline_limit_ ||
      frame.growing != nullptr || !MaySendAtOnce() || !IsUsual(kind, call)) {
    return false;
  }
  rpc::BufferChain* sent = nullptr;  // the frame's, which has all its buffers
  if (frame.attachment.empty()) {
    sent = &frame.message;
  } else if (frame.message.empty()) {
    sent = &frame.attachment;
  }
  Front front;
  if (sent != nullptr && sent->is_one_buffer()) {
    front = FrontOf(sent->only(), front_bytes);
  }
  rpc::BufferChain copy;
  if (front.bytes == nullptr) {
    absl::StatusOr<rpc::Buffer> buffer =
        poller_->context().memory().Allocate(frame_bytes);
    if (!buffer.ok()) return false;  // what comes next says so
    front.bytes = buffer->mutable_data();
    copy.Append(*std::move(buffer));
    TakeBuffers(frame, front.bytes + front_bytes);
    sent = &copy;
  }
  FrameFields fields;
  SetFields<Extent::kAny>(kind, call, frame, &fields);
  fields.message_bytes = static_cast<uint32_t>(message_bytes);
  EncodePrefix(fields, front.bytes);
  Gather(frame, front.bytes + prefix_bytes);

  const rpc::Buffer& rest = sent->only();
  if (front.of_ring) {
    fronts_.Take();
    at_once_sges_[0] = {reinterpret_cast<uint64_t>(front.bytes),
                        static_cast<uint32_t>(front_bytes), fronts_.lkey()};
    at_once_sges_[1] = {reinterpret_cast<uint64_t>(rest.data()),
                        static_cast<uint32_t>(rest.size()),
                        RegisteredMemory::LkeyOf(rest)};
    at_once_wr_.num_sge = 2;
  } else {
    at_once_sges_[0] = {reinterpret_cast<uint64_t>(front.bytes),
                        static_cast<uint32_t>(frame_bytes),
                        RegisteredMemory::LkeyOf(rest)};
  }
  bool signaled = true;  // the buffer is to come back soon
  uint64_t wr_id;
  SendEntry& entry = send_queue_.Push(&signaled, &wr_id);
  entry.buffers = std::move(*sent);
  entry.front_of_ring = front.of_ring;
  PostAtOnce(fields, wr_id, IBV_SEND_SIGNALED, call);
  at_once_wr_.num_sge = 1;
  return true;
}

// Where so many bytes can be written that are sent with `buffer` as it is.
Connection::Front Connection::FrontOf(const rpc::Buffer& buffer, size_t bytes) {
  RegisteredMemory& memory = poller_->context().memory();
  if (memory.HasRoomInFront(buffer, bytes)) {
    return {const_cast<std::byte*>(buffer.data()) - bytes, /*of_ring=*/false};
  }
  if (!memory.Owns(buffer) || buffer.size() < kFewestGathered ||
      bytes > FrontRing::kFrontBytes ||
      qp_->depths().max_send_sge < std::size(at_once_sges_)) {
    return {};
  }
  std::byte* const front = fronts_.Next(memory);
  return {front, /*of_ring=*/front != nullptr};
}

// A message in a buffer of ours, with room in front for everything else: the
// frame is complete where it lies.
bool Connection::GatherInPlace(Outgoing& out, size_t front_bytes, ibv_sge* sge,
                               SendEntry* holds) {
  if (!out.attachment.empty() || !out.message.is_one_buffer() ||
      !poller_->context().memory().HasRoomInFront(out.message.only(),
                                                  front_bytes)) {
    return false;
  }
  rpc::Buffer message = out.message.TakeOnly();
  std::byte* const front = message.mutable_data() - front_bytes;
  WriteFront(out, front);
  *sge = {reinterpret_cast<uint64_t>(front),
          static_cast<uint32_t>(front_bytes + message.size()),
          RegisteredMemory::LkeyOf(message)};
  holds->buffers.Append(std::move(message));
  return true;
}

// ---- Offers.

absl::StatusOr<Connection::PostResult> Connection::PostOffer(Outgoing& out) {
  // Before anything is allocated or bound: room for every window and the frame.
  if (!HasSendRoom(2 * kMaxSegments + 1)) return PostResult::kBlocked;
  Offer offer;
  size_t message_segments = 0;
  if (absl::Status status = MakeOffer(out, &offer, &message_segments);
      !status.ok()) {
    return status;
  }
  const bool in_parts = offer.growing != nullptr;
  const size_t segment_bytes =
      offer.segments.size() * kSegmentBytes + (in_parts ? kTotalBytes : 0);
  out.fields.message_bytes = static_cast<uint32_t>(
      message_segments > 0 || in_parts ? message_segments
                                       : out.message_bytes());
  const size_t frame_bytes = out.prefix_bytes() + out.header.size() +
                             out.message_bytes() + out.attachment.size() +
                             segment_bytes;

  std::byte scratch[kMaxInlineBytes];
  SendEntry holds;
  std::byte* frame = scratch;
  ibv_sge sge = {reinterpret_cast<uint64_t>(scratch),
                 static_cast<uint32_t>(frame_bytes), 0};
  const bool is_inline = frame_bytes <= inline_limit_;
  if (!is_inline) {
    absl::StatusOr<rpc::Buffer> buffer =
        poller_->context().memory().Allocate(frame_bytes);
    if (!buffer.ok()) return buffer.status();
    frame = buffer->mutable_data();
    sge.addr = reinterpret_cast<uint64_t>(frame);
    sge.lkey = RegisteredMemory::LkeyOf(*buffer);
    holds.buffers.Append(*std::move(buffer));
  }

  // The windows are bound in the same post as the frame that names their keys.
  std::vector<ibv_send_wr> binds = MakeBinds(offer, 0);

  std::byte* at = WriteFront(out, frame);
  at = Append(at, out.small_message);
  at = Append(at, out.message);
  if (in_parts) {
    const uint64_t total = offer.growing->total();
    std::memcpy(at, &total, sizeof(total));
    at += kTotalBytes;
  }
  for (size_t i = 0; i < message_segments; ++i, at += kSegmentBytes) {
    EncodeSegment(offer.segments[i], at);
  }
  at = Append(at, out.attachment);
  for (size_t i = message_segments; i < offer.segments.size(); ++i) {
    EncodeSegment(offer.segments[i], at);
    at += kSegmentBytes;
  }
  offer.notify_sent = std::exchange(out.notify_sent, false);
  is_plain_ = false;
  const Offer& added = offers_.Add(std::move(offer));
  if (in_parts) added.growing->Attach(this, added.id);
  poller_->counters().unanswered_offers.Add(1);
  const Call* const call = poller_->calls().Find(out.call);
  if (call == nullptr || call->connection != this) {
    // The frame waited in the queue, and its call has ended.
    ExpireOffers({out.fields.slot, out.fields.call_sequence}, /*wanted=*/true);
  }
  PostSend(out, &sge, 1, is_inline, &holds, absl::MakeSpan(binds));
  poller_->counters().rendezvous_messages_sent.Add(1);
  AfterPost(out);
  return PostResult::kPosted;
}

// ---- The post itself.

// The tag where there is no immediate, the prefix, the header. Grants credits.
std::byte* Connection::WriteFront(Outgoing& out, std::byte* to) {
  out.fields.credits = GrantCredits();
  if (out.invalidate_rkey != 0) {
    const uint32_t tag = EncodeTag(out.fields);
    std::memcpy(to, &tag, sizeof(tag));
    to += kTagBytes;
  }
  EncodePrefix(out.fields, to);
  return Append(to + PrefixBytes(out.fields), out.header);
}

// Takes what the frame `holds`, if it is not null. `first` go before it, with
// the same doorbell.
void Connection::PostSend(Outgoing& out, const ibv_sge* sges, int count,
                          bool is_inline, SendEntry* holds,
                          absl::Span<ibv_send_wr> first) {
  ibv_send_wr wr;
  // Buffers that are held go back soon.
  bool signaled = out.signaled || (holds != nullptr && !holds->buffers.empty());
  SendEntry& entry = send_queue_.Push(&signaled, &wr.wr_id);
  if (holds != nullptr) entry.buffers = std::move(holds->buffers);
  wr.next = nullptr;
  wr.sg_list = const_cast<ibv_sge*>(sges);
  wr.num_sge = count;
  wr.send_flags =
      (signaled ? IBV_SEND_SIGNALED : 0) | (is_inline ? IBV_SEND_INLINE : 0);
  if (out.invalidate_rkey != 0) {
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = out.invalidate_rkey;
  } else {
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = htonl(EncodeTag(out.fields));
  }
  PostBinds(first, &wr);
}

// Posts `binds`, if any, and `last`, if it is not null, as one chain.
bool Connection::PostBinds(absl::Span<ibv_send_wr> binds, ibv_send_wr* last) {
  if (!binds.empty()) binds.back().next = last;
  ibv_send_wr* const first = binds.empty() ? last : binds.data();
  if (first != nullptr && !PostWorkRequests(first)) return false;
  // Until here the device finds the windows by the keys that they had.
  for (ibv_send_wr& bind : binds) bind.bind_mw.mw->rkey = bind.bind_mw.rkey;
  return true;
}

void Connection::FailPost(int error, const ibv_send_wr* bad) {
  // What was pushed for the refused requests never completes.
  uint32_t refused = 0;
  for (; bad != nullptr; bad = bad->next) ++refused;
  send_queue_.Unpush(refused);
  const absl::Status status = VerbsError("ibv_post_send", error);
  rpc::Log(rpc::LogLevel::kError, status.ToString());
  Close(absl::UnavailableError(status.message()));
}

// SendAtOnce and SendRegistered do of this what concerns them.
void Connection::AfterPost(const Outgoing& out) {
  ++sent_frames_;
  starved_ = false;
  answer_due_ = false;
  if (state_ != State::kUp) return;
  const bool is_message = (out.fields.flags & kHasMessage) != 0;
  const bool by_offer =
      (out.fields.flags & (kMessageOffer | kAttachmentOffer)) != 0;
  send_credits_.Spend();
  if (out.fields.kind == FrameKind::kOpen) {
    if ((out.fields.flags & kMethodDefinition) != 0) {
      method_numbers_[out.method_index] = ++next_method_number_;
      method_limit_.Add(out.fields.method_path);
    }
    if (Call* const call = poller_->calls().Find(out.call)) {
      call->open_sent = true;
    }
  }
  if (is_message && !by_offer) {
    poller_->counters().eager_messages_sent.Add(1);
  }
}

// ---- Control frames.

void Connection::SendControl(FrameKind kind, const OfferKey& key,
                             uint32_t detail, std::string_view text,
                             uint8_t flags, uint32_t invalidate_rkey) {
  if (state_ != State::kUp) return;
  Outgoing out;
  out.fields.kind = kind;
  out.fields.flags = flags;
  out.fields.slot = key.slot;
  out.fields.call_sequence = key.call_sequence;
  out.fields.detail = detail;
  out.header = AsBytes(text.substr(0, kMaxResetText));
  out.invalidate_rkey = invalidate_rkey;
  Submit(out);
}

void Connection::SendCreditsIfDue() {
  const bool due = receive_credits_.ShouldGrantNow() || answer_due_;
  if (!due || !send_credits_.CanSendCredits() || !HasSendRoom(1)) {
    return;
  }
  Outgoing out;
  out.fields.kind = FrameKind::kCredit;
  (void)PostEager(out, out.prefix_bytes());
}

}  // namespace rdma
