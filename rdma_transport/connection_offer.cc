// The rendezvous, this side's part: offering memory to the peer, and taking it
// back.
#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/wc_status.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// How often offers whose call is over are looked at.
constexpr absl::Duration kOfferCheck = absl::Seconds(1);

}  // namespace

absl::Status Connection::MakeRegistered(rpc::BufferChain& chain) {
  RegisteredMemory& memory = poller_->context().memory();
  bool usable = chain.buffers().size() <= kMaxSegments;
  for (const rpc::Buffer& buffer : chain.buffers()) {
    usable = usable && memory.Owns(buffer);
  }
  if (usable) return absl::OkStatus();
  absl::StatusOr<rpc::Buffer> copy = memory.Allocate(chain.size());
  if (!copy.ok()) return copy.status();
  chain.CopyTo(copy->mutable_data());
  chain = rpc::BufferChain(*std::move(copy));
  return absl::OkStatus();
}

// The larger part is offered first; both where one is not enough.
absl::Status Connection::ChooseOffers(Outgoing& out, bool* message,
                                      bool* attachment) {
  if (!out.small_message.empty()) {
    out.message = rpc::BufferChain(rpc::Buffer::CopyOf(
        {reinterpret_cast<const char*>(out.small_message.data()),
         out.small_message.size()}));
    out.small_message = {};
  }
  const uint64_t message_bytes = out.message.size();
  const uint64_t attachment_bytes = out.attachment.size();
  *message = message_bytes > 0 && message_bytes >= attachment_bytes;
  *attachment = attachment_bytes > 0 && !*message;
  const uint64_t front = out.prefix_bytes() + out.header.size();
  constexpr uint64_t kOffered = kTotalBytes + kMaxSegments * kSegmentBytes;
  const uint64_t other = std::min(message_bytes, attachment_bytes);
  if (*message || *attachment) {
    if (front + kOffered + other <= frame_limit_) return absl::OkStatus();
    *message = message_bytes > 0;
    *attachment = attachment_bytes > 0;
    if (front + 2 * kOffered <= frame_limit_) return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "metadata of ", out.header.size(),
      " bytes does not fit the peer's frames of ", frame_limit_, " bytes"));
}

// One for each segment that has none; an error leaves the offer as it was.
absl::Status Connection::AddWindows(Offer& offer) {
  if (!use_windows_) return absl::OkStatus();
  const size_t before = offer.windows.size();
  while (offer.windows.size() < offer.segments.size()) {
    if (free_windows_.empty()) {
      absl::StatusOr<std::unique_ptr<MemoryWindow>> window =
          MemoryWindow::Create(poller_->context().pd());
      if (!window.ok()) {
        std::move(offer.windows.begin() + static_cast<std::ptrdiff_t>(before),
                  offer.windows.end(), std::back_inserter(free_windows_));
        offer.windows.resize(before);
        return window.status();
      }
      free_windows_.push_back(*std::move(window));
    }
    offer.windows.push_back(std::move(free_windows_.back()));
    free_windows_.pop_back();
  }
  return absl::OkStatus();
}

// Moves the parts that are offered out of `out`.
absl::Status Connection::MakeOffer(Outgoing& out, Offer* offer,
                                   size_t* message_segments) {
  bool message = false;
  bool attachment = false;
  if (absl::Status status = ChooseOffers(out, &message, &attachment);
      !status.ok()) {
    return status;
  }
  if (out.growing != nullptr) {
    if (!out.growing->failure().ok()) return out.growing->failure();
    if (out.growing->written() == out.growing->total()) out.growing.reset();
  }
  // Where the peer said what it takes, a message beyond that need not travel.
  if (out.message_bytes() > peer_max_message_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("message of ", out.message_bytes(),
                     " bytes is larger than the peer's maximum (",
                     peer_max_message_bytes_, ")"));
  }
  if (out.attachment.size() > peer_max_attachment_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("attachment of ", out.attachment.size(),
                     " bytes is larger than the peer's maximum (",
                     peer_max_attachment_bytes_, ")"));
  }
  offer->key = {out.fields.slot, out.fields.call_sequence};
  offer->call = out.call;
  for (const auto& [offered, chain, flag] :
       {std::tuple{message, &out.message, kMessageOffer},
        std::tuple{attachment, &out.attachment, kAttachmentOffer}}) {
    if (!offered) continue;
    if (chain == &out.message && out.growing != nullptr) {
      offer->AddGrowing(chain->buffers().front(), std::move(out.growing));
      out.fields.flags |= kInParts;
    } else if (absl::Status status = MakeRegistered(*chain); status.ok()) {
      offer->AddChain(*chain);
    } else {
      return status;
    }
    if (chain == &out.message) *message_segments = offer->segments.size();
    out.fields.flags |= flag;
  }
  if (absl::Status status = AddWindows(*offer); !status.ok()) return status;
  if (message) out.message.clear();
  if (attachment) out.attachment.clear();
  return absl::OkStatus();
}

void Connection::AnswerOffer(const OfferKey& key, uint32_t invalidated_rkey,
                             bool all) {
  while (Offer* const offer = offers_.FindOldest(key)) {
    offers_.MarkAnswered(*offer);
    poller_->counters().unanswered_offers.Subtract(1);
    if (offer->notify_sent) NotifySent(offer->call);
    RevokeOffer(*offer, invalidated_rkey);
    if (!all) return;
  }
}

// The peer says that it is done; the windows make sure of it. One of them it
// may have invalidated itself.
void Connection::RevokeOffer(Offer& offer, uint32_t invalidated_rkey) {
  for (const std::unique_ptr<MemoryWindow>& window : offer.windows) {
    if (window->rkey() == invalidated_rkey) continue;
    ++offer.pending_invalidations;
    invalidations_.emplace_back(offer.id, window->rkey());
  }
  if (offer.pending_invalidations == 0) {
    FinishOffer(offer);
  } else {
    PostInvalidations();
  }
}

void Connection::PostInvalidations() {
  while (!invalidations_.empty() && HasSendRoom(1) && state_ == State::kUp) {
    const auto [offer_id, rkey] = invalidations_.front();
    invalidations_.pop_front();
    ibv_send_wr wr = {};
    bool signaled = true;
    SendEntry& entry = send_queue_.Push(&signaled, &wr.wr_id);
    entry.revoked_offer = offer_id;
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = rkey;
    if (!PostWorkRequests(&wr)) return;
  }
  // What found no room goes on with the next completion.
}

void Connection::FinishOffer(Offer& offer) {
  std::move(offer.windows.begin(), offer.windows.end(),
            std::back_inserter(free_windows_));
  offers_.Remove(offer.id);
}

// Once its call is over, an offer must be answered in time: a peer that hears
// of the end stops reading and says so; one that fetches an answer (`wanted`)
// gets the time that takes. The others are cut off: revoking under a READ would
// break the connection all the same.
void Connection::ExpireOffers(const OfferKey& key, bool wanted) {
  const std::deque<uint64_t>& ids = offers_.Unanswered(key);
  if (ids.empty()) return;
  // Longer than this is for ever.
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  const absl::Duration grace =
      std::min(options_.offer_grace + (wanted ? TimeToMove(offers_.bytes())
                                              : absl::ZeroDuration()),
               kLongest);
  for (const uint64_t id : ids) {
    Offer* const offer = offers_.Find(id);
    if (!wanted) offer->StopGrowing();
    // Of one that grows, the time begins when it is complete; see PostPart.
    if (offer->growing == nullptr) {
      offer->expiry_ns = Poller::NowNs() + absl::ToInt64Nanoseconds(grace);
    }
  }
  if (!offer_timer_.scheduled()) ScheduleOfferTimer();
}

void Connection::ScheduleOfferTimer() {
  poller_->Schedule(&offer_timer_,
                    Poller::NowNs() + absl::ToInt64Nanoseconds(std::min(
                                          options_.offer_grace, kOfferCheck)));
}

void Connection::OnOfferTimer() {
  const int64_t earliest_ns = offers_.EarliestExpiryNs();
  if (earliest_ns > Poller::NowNs()) {
    if (earliest_ns != INT64_MAX) ScheduleOfferTimer();
    return;
  }
  Close(absl::UnavailableError(absl::StrCat(
      "the connection to ", peer_name_, " was closed: the peer held on to a ",
      "message for more than ", absl::FormatDuration(options_.offer_grace),
      " after its call had ended")));
}

std::vector<ibv_send_wr> Connection::MakeBinds(Offer& offer, size_t first) {
  if (offer.windows.empty()) return {};
  std::vector<ibv_send_wr> binds(offer.segments.size() - first);
  for (size_t i = 0; i < binds.size(); ++i) {
    Segment& segment = offer.segments[first + i];
    const MemoryWindow& window = *offer.windows[first + i];
    ibv_send_wr& wr = binds[i];
    wr = {};
    bool signaled = false;
    send_queue_.PushPlain(&signaled, &wr.wr_id);
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
    wr.bind_mw.mw = window.get();
    wr.bind_mw.rkey = window.next_rkey();
    wr.bind_mw.bind_info.mr =
        RegisteredMemory::MrOf(offer.buffers[offer.segment_buffers[first + i]]);
    wr.bind_mw.bind_info.addr = segment.address;
    wr.bind_mw.bind_info.length = segment.length;
    wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
    wr.next = i + 1 < binds.size() ? &binds[i + 1] : nullptr;
    segment.rkey = wr.bind_mw.rkey;
  }
  return binds;
}

// ---- Completions of what was posted.

void Connection::OnSendCompletion(const ibv_wc& wc) {
  if (wc.status == IBV_WC_WR_FLUSH_ERR) {
    CloseAsPeerGone();  // no request of ours had failed before
  } else if (wc.status != IBV_WC_SUCCESS) {
    Close(WcStatusToStatus(wc.status, "the connection to " + peer_name_));
  }
  send_queue_.Complete(wc.wr_id, [this](SendEntry& entry) {
    if (entry.front_of_ring) fronts_.Return();
    // Else others may be the next to write there, on CPUs of their own.
    if (entry.buffers.is_one_buffer() && poller_->IsAlone()) {
      poller_->context().memory().TakeBack(entry.buffers.TakeOnly());
    }
    if (entry.read != nullptr) {
      --reads_outstanding_;
      entry.read->ChunkDone();
      if (entry.read->arriving() != nullptr) DeliverArriving(*entry.read);
      if (entry.read->finished() && IsFirstOfItsCall(*entry.read)) {
        FinishRead(entry.read);
      }
    }
    if (entry.revoked_offer != 0) {
      Offer* const offer = offers_.Find(entry.revoked_offer);
      if (offer != nullptr && --offer->pending_invalidations == 0) {
        FinishOffer(*offer);
      }
    }
  });
  if (poller_->CompletionsAreWanted()) GiveBackCompletions();
  if (send_queue_.depth() == kIdleSendSlots) DeepenIfBusy();
  if (state_ == State::kClosing) {
    PostMarker();
    MaybeFinish();
  } else if (!queue_.empty() || !reads_.empty() || !invalidations_.empty() ||
             receive_credits_.ShouldGrantNow() || answer_due_ ||
             !close_when_flushed_.ok()) {
    poller_->MarkDirty(this);
  }
}

}  // namespace rdma
