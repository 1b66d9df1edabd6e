// Messages in parts: what is sent while it is still being written, and what
// comes so.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rdma_transport/connection.h"

namespace rdma {
namespace {

// How often messages whose parts do not come are looked for, and what a writer
// gets in any case.
constexpr absl::Duration kPartCheck = absl::Seconds(1);
constexpr absl::Duration kLeastGrace = absl::Seconds(1);
// Of one connection: each frame looks through them.
constexpr size_t kMostReadsInParts = 1024;

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
  if (absl::Status status = AddWindows(*offer); !status.ok()) {
    offer->StopGrowing();
    return status;
  }
  std::vector<ibv_send_wr> binds =
      MakeBinds(*offer, offer->segments.size() - 1);
  if (!PostBinds(absl::MakeSpan(binds), nullptr)) return PostResult::kPosted;
  if (offer->offered_bytes == offer->growing->total()) {
    offer->StopGrowing();
    // A server's call is over already: its client's time begins.
    const Call* const call = poller_->calls().Find(offer->call);
    if (call == nullptr || call->connection != this) {
      ExpireOffers(offer->key, /*wanted=*/true);
    }
  }
  std::byte segment[kSegmentBytes];
  EncodeSegment(offer->segments.back(), segment);
  // `out` may lie in a queue that is cleared, where posting fails.
  Outgoing part;
  part.fields = out.fields;
  part.small_message = segment;
  absl::StatusOr<PostResult> result =
      PostEager(part, part.prefix_bytes() + kSegmentBytes);
  if (!result.ok()) offer->StopGrowing();
  return result;
}

void Connection::EndGrowing(const GrowingMessage& message,
                            const absl::Status& why) {
  Offer* const offer = offers_.Find(message.offer_id());
  if (state_ != State::kUp || offer == nullptr) return;
  offer->StopGrowing();
  ExpireOffers(offer->key, /*wanted=*/false);
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
  poller_->MarkDirty(this);
}

absl::Status Connection::AwaitParts(IncomingRead& read) {
  const auto waits = [](const auto& other) { return other->waits_for_parts(); };
  const auto count = std::count_if(reads_.begin(), reads_.end(), waits);
  if (count + waiting_reads_.size() >= kMostReadsInParts) {
    return absl::ResourceExhaustedError(
        absl::StrCat("more than ", kMostReadsInParts,
                     " messages of one connection are still being written"));
  }
  const absl::Duration time = std::max(options_.offer_grace, kLeastGrace) +
                              TimeToMove(read.message_bytes());
  read.complete_by_ns =
      Poller::NowNs() +
      std::min(absl::ToInt64Nanoseconds(time), Poller::kLongestTimerNs);
  if (!part_timer_.scheduled()) SchedulePartTimer();
  return absl::OkStatus();
}

void Connection::SchedulePartTimer() {
  poller_->Schedule(&part_timer_,
                    Poller::NowNs() + absl::ToInt64Nanoseconds(kPartCheck));
}

// A peer that does not go on would keep memory of this side's.
void Connection::OnPartTimer() {
  if (state_ != State::kUp) return;
  const int64_t now_ns = Poller::NowNs();
  bool any_waits = false;
  std::vector<rpc::CallHandle> late;
  const auto look = [&](const IncomingRead& read) {
    if (!read.waits_for_parts()) return;
    any_waits = true;
    if (read.complete_by_ns <= now_ns) late.push_back(read.call());
  };
  for (const std::unique_ptr<IncomingRead>& read : reads_) look(*read);
  for (const WaitingRead& waiting : waiting_reads_) look(*waiting.read);
  for (const rpc::CallHandle handle : late) {
    if (Call* const call = poller_->calls().Find(handle)) {
      ResetCall(*call,
                absl::UnavailableError(absl::StrCat(
                    "the peer ", peer_name_, " has not completed a message ",
                    "that it began to send")));
    }
  }
  if (any_waits && state_ == State::kUp) SchedulePartTimer();
}

}  // namespace rdma
