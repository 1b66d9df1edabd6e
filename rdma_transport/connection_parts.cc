// Messages in parts: what is sent while it is still being written, and what
// comes so.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma_transport/connection.h"

namespace rdma {
namespace {

// How often messages whose parts do not come are looked for.
constexpr absl::Duration kPartCheck = absl::Seconds(1);

}  // namespace

// ---- This side's.

void Connection::OfferMore(GrowingMessage& message) {
  const Offer* const offer = offers_.Find(message.offer_id());
  if (state_ != State::kUp || offer == nullptr || message.part_waits ||
      !offer->HasMore()) {
    return;
  }
  Outgoing out;
  out.fields.kind = FrameKind::kPart;
  out.fields.slot = offer->key.slot;
  out.fields.call_sequence = offer->key.call_sequence;
  out.call = offer->call;
  out.part_of = offer->id;
  message.part_waits = true;
  Submit(out);
}

// What has been written by now, in one segment.
absl::StatusOr<Connection::PostResult> Connection::PostPart(Outgoing& out) {
  Offer* const offer = offers_.Find(out.part_of);
  if (offer == nullptr || offer->growing == nullptr) return PostResult::kPosted;
  if (!HasSendRoom(2)) return PostResult::kBlocked;
  offer->growing->part_waits = false;
  if (!offer->AddWritten()) return PostResult::kPosted;
  if (absl::Status status = AddWindows(*offer); !status.ok()) return status;
  std::vector<ibv_send_wr> binds =
      MakeBinds(*offer, offer->segments.size() - 1);
  if (!PostBinds(absl::MakeSpan(binds), nullptr)) return PostResult::kPosted;
  std::byte segment[kSegmentBytes];
  EncodeSegment(offer->segments.back(), segment);
  if (offer->offered_bytes == offer->growing->total()) offer->StopGrowing();
  out.small_message = segment;
  auto result = PostEager(out, out.prefix_bytes() + kSegmentBytes);
  out.small_message = {};
  return result;
}

void Connection::EndGrowing(const GrowingMessage& message,
                            const absl::Status& why) {
  Offer* const offer = offers_.Find(message.offer_id());
  if (state_ != State::kUp || offer == nullptr) return;
  offer->StopGrowing();
  Outgoing out;
  out.fields.kind = FrameKind::kPart;
  out.fields.slot = offer->key.slot;
  out.fields.call_sequence = offer->key.call_sequence;
  out.call = offer->call;
  FailFrame(out, why);
}

// ---- The peer's.

void Connection::RefuseParts() {
  ProtocolError("more of a message than there is");
}

IncomingRead* Connection::FindReadInParts(const OfferKey& key) {
  for (const std::unique_ptr<IncomingRead>& read : reads_) {
    if (read->key() == key && read->waits_for_parts()) return read.get();
  }
  for (const WaitingRead& waiting : waiting_reads_) {
    IncomingRead* const read = waiting.read.get();
    if (read->key() == key && read->waits_for_parts()) return read;
  }
  return nullptr;
}

void Connection::OnPart(const FrameView& view) {
  IncomingRead* const read =
      FindReadInParts({view.fields.slot, view.fields.call_sequence});
  if (read == nullptr) return;  // its call is over
  if (!read->AddPart(view.message)) return RefuseParts();
  read->last_part_ns = Poller::NowNs();
  poller_->MarkDirty(this);
}

void Connection::SchedulePartTimer() {
  poller_->Schedule(&part_timer_,
                    Poller::NowNs() + absl::ToInt64Nanoseconds(std::min(
                                          options_.offer_grace, kPartCheck)));
}

// A peer that does not go on keeps memory of this side's.
void Connection::OnPartTimer() {
  if (state_ != State::kUp) return;
  const int64_t oldest_ns =
      Poller::NowNs() - absl::ToInt64Nanoseconds(options_.offer_grace);
  bool any_waits = false;
  std::vector<rpc::CallHandle> late;
  const auto look = [&](const IncomingRead& read) {
    if (!read.waits_for_parts()) return;
    any_waits = true;
    if (read.last_part_ns <= oldest_ns) late.push_back(read.call());
  };
  for (const std::unique_ptr<IncomingRead>& read : reads_) look(*read);
  for (const WaitingRead& waiting : waiting_reads_) look(*waiting.read);
  for (const rpc::CallHandle handle : late) {
    if (Call* const call = poller_->calls().Find(handle)) {
      ResetCall(*call,
                absl::UnavailableError(absl::StrCat(
                    "the peer ", peer_name_, " stopped in the middle of a ",
                    "message: nothing came for ",
                    absl::FormatDuration(options_.offer_grace))));
    }
  }
  if (any_waits && state_ == State::kUp) SchedulePartTimer();
}

}  // namespace rdma
