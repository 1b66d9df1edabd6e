// How a connection sends the small frames of calls, for where most come from,
// in line.
#ifndef VERBENA_RDMA_TRANSPORT_CALL_SENDING_H_
#define VERBENA_RDMA_TRANSPORT_CALL_SENDING_H_

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "rdma_transport/call.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/frame.h"
#include "rpc/transport.h"

namespace rdma {

static_assert(kFramePrefixBytes + kOpenExtraBytes <= rpc::kSmallMessageRoom);

// What comes in front of a frame's header and message.
inline size_t Connection::FrontBytes(FrameKind kind) {
  return kFramePrefixBytes + (kind == FrameKind::kOpen ? kOpenExtraBytes : 0);
}

// Whether nothing is in the way of one frame that is sent now.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::MaySendAtOnce() {
  assert(!is_plain_ || IsPlain());
  return (ABSL_PREDICT_TRUE(is_plain_) || MaySendUnplain()) &&
         send_credits_.CanSend() && send_queue_.HasRoom(1);
}

// Whether a frame of the call's has nothing to say beyond what a usual one
// says.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::IsUsual(
    FrameKind kind, const Call& call) const {
  if (kind != FrameKind::kOpen) return !call.owes_done && !call.was_held_back;
  return call.method_index < method_numbers_.size() &&
         method_numbers_[call.method_index] != 0;
}

// All but message_bytes. Grants credits. REQUIRES: IsUsual(kind, call).
template <Connection::Extent kExtent>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Connection::SetFields(
    FrameKind kind, const Call& call, const rpc::OutgoingFrame& frame,
    FrameFields* fields) {
  if (kind == FrameKind::kOpen) {
    fields->detail = method_numbers_[call.method_index] - 1;
    fields->timeout_us = call.timeout_us;
  } else {
    fields->detail = frame.status_code;
  }
  fields->kind = kind;
  if constexpr (kExtent == Extent::kOnlyMessage) {
    fields->flags = kEnd | kHasMessage;
    fields->header_bytes = 0;
  } else {
    fields->flags =
        (frame.end ? kEnd : 0) | (frame.has_message ? kHasMessage : 0);
    fields->header_bytes = static_cast<uint32_t>(frame.header.size());
  }
  fields->slot = call.slot;
  fields->call_sequence = call.sequence;
  fields->credits = GrantCredits();
}

// Posts at_once_sges_; `flags`: ibv_send_flags.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Connection::PostAtOnce(
    const FrameFields& fields, uint64_t wr_id, unsigned int flags, Call& call) {
  at_once_wr_.wr_id = wr_id;
  at_once_wr_.send_flags = flags;
  at_once_wr_.imm_data = htonl(EncodeTag(fields));
  call.sent_end = (fields.flags & kEnd) != 0;
  if (!PostWorkRequests(&at_once_wr_)) return;
  ++sent_frames_;
  answer_due_ = false;
  send_credits_.Spend();
  call.open_sent = true;
  if ((fields.flags & kHasMessage) != 0) {
    poller_->counters().eager_messages_sent.Add(1);
  }
}

// The usual case: the whole of what a call has to say is small, and nothing is
// in its way. Does what SendFrame would, without getting ready for anything
// else. False: not so, and nothing happened.
template <Connection::Extent kExtent>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::SendAtOnce(
    FrameKind kind, Call& call, rpc::OutgoingFrame& frame) {
  constexpr bool kOnly = kExtent == Extent::kOnlyMessage;
  const size_t front_bytes =
      FrontBytes(kind) + (kOnly ? 0 : frame.header.size());
  const bool has_buffers = !frame.message.empty() || !frame.attachment.empty();
  const bool fits_in_front = frame.header.empty() &&
                             front_bytes <= frame.small_message_room &&
                             !has_buffers;
  size_t frame_bytes = front_bytes + frame.small_message.size();
  if (!kOnly && has_buffers) {
    frame_bytes += frame.message.size() + frame.attachment.size();
  }
  if (ABSL_PREDICT_FALSE((kOnly && !fits_in_front) ||
                         frame_bytes > at_once_limit_ || !MaySendAtOnce() ||
                         !IsUsual(kind, call))) {
    return false;
  }
  assert(!has_buffers || frame.growing == nullptr);
  FrameFields fields;
  SetFields<kExtent>(kind, call, frame, &fields);
  fields.message_bytes = static_cast<uint32_t>(frame.small_message.size());
  if (!kOnly)
    fields.message_bytes += static_cast<uint32_t>(frame.message.size());

  std::byte scratch[kMaxInlineBytes];
  std::byte* bytes = scratch;
  if (kOnly || fits_in_front) {
    bytes = const_cast<std::byte*>(frame.small_message.data()) - front_bytes;
  } else {
    std::byte* const end =
        Gather(frame, scratch + front_bytes - frame.header.size());
    if (has_buffers) TakeBuffers(frame, end);
  }
  EncodePrefix(fields, bytes);
  at_once_sges_[0].addr = reinterpret_cast<uint64_t>(bytes);
  at_once_sges_[0].length = static_cast<uint32_t>(frame_bytes);
  bool signaled = false;
  uint64_t wr_id;
  send_queue_.PushPlain(&signaled, &wr_id);
  PostAtOnce(fields, wr_id,
             IBV_SEND_INLINE | (signaled ? IBV_SEND_SIGNALED : 0), call);
  return true;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Connection::OpenCallInLine(
    Call& call, rpc::OutgoingFrame& frame) {
  if (free_slots_.empty()) [[unlikely]] {
    AttachCall(call, static_cast<uint32_t>(slots_.size()));
  } else {
    AttachCallTo(call, free_slots_.back());
    free_slots_.pop_back();
  }
  call.sequence = next_sequence_++;
  // Where the first frame is the last, none was held back behind it.
  if (!frame.end || !frame.has_message ||
      !SendAtOnce<Extent::kOnlyMessage>(FrameKind::kOpen, call, frame))
      [[unlikely]] {
    SendOpening(call, frame);
  }
}

// A server's call is over.
inline void Connection::AfterAnswer(Call& call) {
  if (ABSL_PREDICT_FALSE(!call.received_end || !is_plain_)) {
    EndAnswered(call);
  }
  DetachServerCall(call);
  delivery_->CloseInOrder(call);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Connection::SendDataInLine(
    Call& call, rpc::OutgoingFrame& frame) {
  if (is_plain_ && !is_client_ && frame.end && frame.has_message &&
      call.send_window > 0 && !call.sent_end &&
      SendAtOnce<Extent::kOnlyMessage>(FrameKind::kData, call, frame))
      [[likely]] {
    if (call.connection == this) AfterAnswer(call);
    return false;  // the last is not told of
  }
  return SendAnyData(call, frame);
}

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CALL_SENDING_H_
