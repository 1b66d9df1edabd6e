// The rendezvous: offering memory to the peer and reading what it offers.
#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "memory/copy_bytes.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/wc_status.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// One READ moves at most this much, so that several overlap and other
// connections' READs come in between.
constexpr uint32_t kReadChunkBytes = 1u << 20;
// What is parsed while it is read. Less is not worth it; of more, strings may
// be longer than protobuf makes room for before it has seen them (50,000,000
// bytes), and would be copied as they grow.
constexpr uint64_t kFewestArrivingBytes = 4 << 20;
constexpr uint64_t kFewestArrivingInPlaceBytes = 512 << 10;
// Where they are read to where they belong, protobuf's messages end here.
constexpr uint64_t kMostArrivingBytes = 50'000'000;
constexpr uint64_t kMostArrivingInPlaceBytes = (uint64_t{1} << 31) - 1;
// A message that finds no memory waits this long for some to be freed.
constexpr int64_t kMemoryWaitNs = 2'000'000'000;
constexpr int64_t kMemoryRetryNs = 2'000'000;
// Where another one's turn takes longer, the next is read beside it.
constexpr int64_t kTurnWaitNs = 100'000'000;
// How often offers whose call is over are looked at.
constexpr absl::Duration kOfferCheck = absl::Seconds(1);

}  // namespace

// ---- This side's offers.

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

// ---- The peer's offers.

absl::Status Connection::CheckOfferLimits(const IncomingRead& read) const {
  if (read.message_bytes() > options_.max_receive_message_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Received message larger than max (", read.message_bytes(),
                     " vs. ", options_.max_receive_message_bytes, ")"));
  }
  if (read.attachment_bytes() > options_.max_receive_attachment_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "Received attachment larger than max (", read.attachment_bytes(),
        " vs. ", options_.max_receive_attachment_bytes, ")"));
  }
  const uint64_t budget = poller_->context().memory().budget_bytes();
  if (read.message_bytes() > budget || read.attachment_bytes() > budget ||
      read.message_bytes() + read.attachment_bytes() > budget) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Received ", read.message_bytes(),
                     " bytes of message and ", read.attachment_bytes(),
                     " of attachment, more than the receiver's "
                     "memory budget (",
                     budget, "): raise verbena.memory_budget_bytes"));
  }
  return absl::OkStatus();
}

void Connection::StartRead(const FrameView& view, rpc::Buffer&& buffer,
                           Call& call, bool opens) {
  HeldFrame* const held = delivery_->Hold(call, opens);
  held->header.assign(reinterpret_cast<const char*>(view.header.data()),
                      view.header.size());
  held->frame.has_message = view.has(kHasMessage);
  held->frame.end = view.has(kEnd);
  held->frame.status_code = view.fields.detail;
  held->frame.window_bytes = static_cast<uint64_t>(view.WindowBytes());
  // A part that came with the frame itself is kept, not the receive buffer.
  const auto copy = [](absl::Span<const std::byte> bytes) {
    if (bytes.empty()) return rpc::BufferChain();
    return rpc::BufferChain(rpc::Buffer::CopyOf(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  };
  if (!view.has(kMessageOffer)) held->frame.message = copy(view.message);
  if (!view.has(kAttachmentOffer)) {
    held->frame.attachment = copy(view.attachment);
  }
  auto read = std::make_unique<IncomingRead>(view, call.handle, held,
                                             &poller_->messages_being_read());
  if (read->offers_too_much()) return RefuseParts();
  absl::Status status = CheckOfferLimits(*read);
  if (status.ok() && read->waits_for_parts()) status = AwaitParts(*read);
  if (!status.ok()) {
    RefuseRead(std::move(read), status);
    return;
  }
  is_plain_ = false;
  using Turn = MessagesBeingRead::Turn;
  const bool memory_is_due = AwaitsMemory();
  const Turn turn = !memory_is_due && MayArrive(view, call, *read)
                        ? NextTurn()
                        : Turn::kNever;
  if (turn == Turn::kLater && !is_client_) return AwaitTurn(std::move(read));
  if (!memory_is_due && ((turn == Turn::kNow && StartArriving(call, *read)) ||
                         read->Allocate(poller_->context().memory()).ok())) {
    // Its thread is the one that waits for the answer, and here now.
    const bool parse_at_once = is_client_ && read->arriving() != nullptr;
    if (parse_at_once) read->TakeHeld();
    reads_.push_back(std::move(read));
    poller_->MarkDirty(this);
    if (parse_at_once) {
      buffer.reset();
      delivery_->DeliverArriving(call);
    }
    return;
  }
  waiting_reads_.push_back({std::move(read), Poller::NowNs() + kMemoryWaitNs});
  if (!memory_timer_.scheduled()) {
    poller_->Schedule(&memory_timer_, Poller::NowNs() + kMemoryRetryNs);
  }
}

// Client: it would be delivered at once, but not below another parser, nor
// before what else the call is to hear; and an error has no message to parse.
bool Connection::MayDeliverArriving(const FrameView& view, const Call& call,
                                    const HeldFrame& held) const {
  return view.fields.detail == 0 && !poller_->callbacks_wait() && !call.busy &&
         call.sent_count == 0 && &call.inbox.front() == &held;
}

bool Connection::MayArrive(const FrameView& view, const Call& call,
                           const IncomingRead& read) const {
  const HeldFrame& held = *read.held();
  const bool in_place = poller_->context().device()->reserved_lkey() != 0;
  const uint64_t fewest =
      in_place ? kFewestArrivingInPlaceBytes : kFewestArrivingBytes;
  const uint64_t most =
      in_place ? kMostArrivingInPlaceBytes : kMostArrivingBytes;
  return view.has(kEnd) && !view.has(kAttachmentOffer) &&
         (is_client_ ? MayDeliverArriving(view, call, held) : held.opens) &&
         read.message_bytes() >= fewest && read.message_bytes() <= most &&
         delivery_->TakesArriving(call);
}

MessagesBeingRead::Turn Connection::NextTurn() const {
  using Turn = MessagesBeingRead::Turn;
  MessagesBeingRead& all = poller_->messages_being_read();
  if (poller_->context().device()->reserved_lkey() != 0) return all.NextTurn();
  return all.IsLikelyAlone() ? Turn::kNow : Turn::kNever;
}

bool Connection::StartArriving(Call& call, IncomingRead& read) {
  DeviceContext& context = poller_->context();
  absl::StatusOr<rpc::Buffer> memory =
      context.memory().Allocate(ArrivingMessage::kBytes);
  if (!memory.ok()) return false;
  auto arriving = std::make_shared<ArrivingMessage>(
      poller_, this, *std::move(memory), context.device()->reserved_lkey(),
      read.message_bytes());
  call.is_arriving = true;
  read.held()->frame.arriving = arriving.get();
  read.held()->arriving = arriving;
  read.ParseWhatArrives(std::move(arriving));
  return true;
}

void Connection::AwaitTurn(std::unique_ptr<IncomingRead> read) {
  MessagesBeingRead& all = poller_->messages_being_read();
  waiting_reads_.push_back({std::move(read), Poller::NowNs() + kTurnWaitNs,
                            /*for_turn=*/true, all.turns()});
  all.Wait(this);
  if (!memory_timer_.scheduled()) {
    poller_->Schedule(&memory_timer_, Poller::NowNs() + kMemoryRetryNs);
  }
}

bool Connection::AwaitsMemory() const {
  return std::any_of(
      waiting_reads_.begin(), waiting_reads_.end(),
      [](const WaitingRead& waiting) { return !waiting.for_turn; });
}

// Whether it waits on. Else it has begun, or waits for memory now.
bool Connection::AwaitsTurn(WaitingRead& waiting, int64_t now_ns) {
  if (!waiting.for_turn) return false;
  MessagesBeingRead& all = poller_->messages_being_read();
  const bool is_turn = all.IsTurnOf(this);
  if (!is_turn && !waiting.read->abandoned()) {
    if (std::exchange(waiting.turn, all.turns()) != all.turns()) {
      waiting.give_up_ns = now_ns + kTurnWaitNs;
    }
    if (now_ns < waiting.give_up_ns) return true;
    all.GiveTurnsUp();
  }
  waiting.for_turn = false;
  waiting.give_up_ns = now_ns + kMemoryWaitNs;
  all.StopWaiting(this);
  if (is_turn) all.NoteTurn();
  Call* const call = poller_->calls().Find(waiting.read->call());
  const bool begun = is_turn && all.IsAlone() && call != nullptr &&
                     !waiting.read->abandoned() &&
                     StartArriving(*call, *waiting.read);
  if (!begun) all.TellNext();
  return false;
}

void Connection::StopReading(const ArrivingMessage& message) {
  for (const std::unique_ptr<IncomingRead>& read : reads_) {
    if (read->arriving() != &message) continue;
    read->Abandon();
    poller_->MarkDirty(this);
    Call* const call =
        is_client_ ? poller_->calls().Find(read->call()) : nullptr;
    if (call != nullptr) {
      ResetCall(*call, absl::CancelledError("the response is not wanted"));
    }
    return;
  }
}

void Connection::RefuseRead(std::unique_ptr<IncomingRead> read,
                            const absl::Status& why) {
  if (Call* const call = poller_->calls().Find(read->call())) {
    const bool opens = read->held() != nullptr && read->held()->opens;
    ResetCall(*call, why, /*not_run=*/opens);
  }
  SendControl(FrameKind::kDone, read->key(), 0, {}, 0,
              peer_windows_ ? read->done_rkey() : 0);
}

bool Connection::IsReadingFor(const Call& call) const {
  // A client's end says done for nothing.
  if (is_client_ || (reads_.empty() && waiting_reads_.empty())) return false;
  const auto is_of_call = [&call](const auto& read) {
    return read->call() == call.handle;
  };
  return std::any_of(reads_.begin(), reads_.end(), is_of_call) ||
         std::any_of(waiting_reads_.begin(), waiting_reads_.end(),
                     [&](const WaitingRead& waiting) {
                       return is_of_call(waiting.read);
                     });
}

// An offer for a call that is over: nothing of it is read. Those of one call
// are answered in order, so that it may have to wait for another one.
void Connection::RefuseOfferOf(const FrameView& view) {
  const OfferKey key = {view.fields.slot, view.fields.call_sequence};
  if (key.slot < answered_early_.size() &&
      answered_early_[key.slot] == key.call_sequence) {
    return;  // the answer has said it
  }
  auto refused = std::make_unique<IncomingRead>(
      view, rpc::CallHandle(), nullptr, &poller_->messages_being_read());
  refused->Abandon();
  is_plain_ = false;
  for (const WaitingRead& waiting : waiting_reads_) {
    if (!(waiting.read->key() == key)) continue;
    waiting_reads_.push_back({std::move(refused), 0});
    return;
  }
  reads_.push_back(std::move(refused));
  poller_->MarkDirty(this);
}

void Connection::RetryWaitingReads() {
  const int64_t now_ns = Poller::NowNs();
  bool memory_is_short = false;
  for (size_t i = 0; i < waiting_reads_.size();) {
    WaitingRead& waiting = waiting_reads_[i];
    if (AwaitsTurn(waiting, now_ns)) {
      ++i;
      continue;
    }
    absl::Status status;
    if (waiting.read->arriving() == nullptr && !waiting.read->abandoned()) {
      if (!memory_is_short) {
        status = waiting.read->Allocate(poller_->context().memory());
      }
      if (memory_is_short || (!status.ok() && now_ns < waiting.give_up_ns)) {
        // The first comes first.
        memory_is_short = true;
        ++i;
        continue;
      }
    }
    std::unique_ptr<IncomingRead> read = std::move(waiting.read);
    waiting_reads_.erase(waiting_reads_.begin() +
                         static_cast<std::ptrdiff_t>(i));
    if (status.ok()) {
      is_plain_ = false;
      reads_.push_back(std::move(read));
    } else {
      RefuseRead(std::move(read), status);
    }
    if (state_ != State::kUp) return;
  }
  poller_->MarkDirty(this);
  if (!waiting_reads_.empty()) {
    poller_->Schedule(&memory_timer_, now_ns + kMemoryRetryNs);
  }
}

void Connection::PumpReads() {
  for (size_t i = 0; i < reads_.size();) {
    IncomingRead* const read = reads_[i].get();
    while (read->CanReadOn() && reads_outstanding_ < max_reads_ &&
           HasSendRoom(1)) {
      const ReadChunk chunk = read->NextChunk(kReadChunkBytes);
      ibv_sge sge = {reinterpret_cast<uint64_t>(chunk.to), chunk.bytes,
                     chunk.lkey};
      ibv_send_wr wr = {};
      bool signaled = true;
      SendEntry& entry = send_queue_.Push(&signaled, &wr.wr_id);
      entry.read = read;
      ++reads_outstanding_;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.opcode = IBV_WR_RDMA_READ;
      wr.send_flags = IBV_SEND_SIGNALED;
      if (chunk.whole_bytes >= memory::kFewestBytesPastCaches) {
        wr.send_flags |= poller_->context().device()->past_caches_flag();
      }
      wr.wr.rdma.remote_addr = chunk.remote_address;
      wr.wr.rdma.rkey = chunk.rkey;
      if (!PostWorkRequests(&wr)) return;
    }
    // An abandoned one with nothing outstanding, or one that had to wait.
    if (read->finished() && IsFirstOfItsCall(*read)) {
      FinishRead(read);
      if (state_ != State::kUp) return;
      continue;
    }
    ++i;
  }
}

// The parser goes on from the first chunk.
void Connection::DeliverArriving(IncomingRead& read) {
  HeldFrame* const held = read.TakeHeld();
  Call* const call = poller_->calls().Find(read.call());
  if (held != nullptr && call != nullptr) delivery_->Complete(*call, held);
}

// Offers of one call are answered in order.
bool Connection::IsFirstOfItsCall(const IncomingRead& read) const {
  const auto first = std::find_if(
      reads_.begin(), reads_.end(),
      [&read](const auto& other) { return other->key() == read.key(); });
  return first->get() == &read;
}

void Connection::FinishRead(IncomingRead* read) {
  const auto found = std::find_if(
      reads_.begin(), reads_.end(),
      [read](const auto& candidate) { return candidate.get() == read; });
  const std::unique_ptr<IncomingRead> finished = std::move(*found);
  reads_.erase(found);
  if (state_ != State::kUp) return;
  const uint32_t done_rkey = peer_windows_ ? finished->done_rkey() : 0;
  Call* const call =
      finished->abandoned() ? nullptr : poller_->calls().Find(finished->call());
  HeldFrame* const held = finished->held();
  const bool is_delivered = finished->arriving() != nullptr;
  if (call != nullptr) call->is_arriving = false;
  if (call == nullptr || (held == nullptr && !is_delivered)) {
    SendControl(FrameKind::kDone, finished->key(), 0, {}, 0, done_rkey);
    // Its call's end may wait for it.
    Call* const ending = poller_->calls().Find(finished->call());
    if (ending != nullptr && ending->held_back != nullptr &&
        ending->connection == this) {
      SendHeldBack(*ending);
    }
    return;
  }
  poller_->counters().rendezvous_messages_received.Add(1);
  if (is_delivered && is_client_) {
    // In this order: what says done may close the connection.
    delivery_->CloseInOrder(*call);
    SendControl(FrameKind::kDone, finished->key(), 0, {}, 0, done_rkey);
    DetachCall(*call);
    return;
  }
  const bool opens = is_delivered || held->opens;
  if (opens) {
    // The answer says it, where there soon is one; see CallDelivery.
    call->owes_done = true;
    call->done_rkey = done_rkey;
  }
  if (!is_delivered) {
    finished->MoveInto(held->frame);
    delivery_->Complete(*call, held);
  }
  // Last, as it may close the connection.
  if (!opens) {
    SendControl(FrameKind::kDone, finished->key(), 0, {}, 0, done_rkey);
  }
}

void Connection::AbandonReads(rpc::CallHandle call) {
  for (WaitingRead& waiting : waiting_reads_) {
    if (waiting.read->call() == call) waiting.read->Abandon();
  }
  for (const std::unique_ptr<IncomingRead>& read : reads_) {
    if (read->call() == call) read->Abandon();
  }
  if (!reads_.empty() || !waiting_reads_.empty()) poller_->MarkDirty(this);
}

// ---- Completions of what was posted.

void Connection::OnSendCompletion(const ibv_wc& wc) {
  if (wc.status == IBV_WC_WR_FLUSH_ERR) {
    CloseAsPeerGone();  // no request of ours had failed before
  } else if (wc.status != IBV_WC_SUCCESS) {
    Close(WcStatusToStatus(wc.status, "the connection to " + peer_name_));
  }
  send_queue_.Complete(wc.wr_id, [this](SendEntry& entry) {
    // Else others may be the next to write there, on CPUs of their own. Of
    // several buffers most are an attachment's, which its owner may keep.
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
