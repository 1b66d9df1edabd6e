// The rendezvous, the peer's part: reading what it offers.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "memory/copy_bytes.h"
#include "rdma_transport/connection.h"

namespace rdma {
namespace {

// One READ moves at most this much, so that several overlap and other
// connections' READs come in between.
constexpr uint32_t kReadChunkBytes = 1u << 20;
// What is parsed while it is read. Less is not worth it; of more, strings may
// be longer than protobuf makes room for before it has seen them (50,000,000
// bytes), and would be copied as they grow.
constexpr uint64_t kFewestArrivingBytes = 4 << 20;
constexpr uint64_t kMostArrivingBytes = 50'000'000;
// Where strings are read to where they belong: the longest is protobuf's own
// limit.
constexpr uint64_t kFewestArrivingInPlaceBytes = 512 << 10;
constexpr uint64_t kMostArrivingInPlaceBytes = (uint64_t{1} << 31) - 1;
// A message that finds no memory waits this long for some to be freed.
constexpr int64_t kMemoryWaitNs = 2'000'000'000;
constexpr int64_t kMemoryRetryNs = 2'000'000;
// Where another one's turn takes longer, the next is read beside it.
constexpr int64_t kTurnWaitNs = 100'000'000;

}  // namespace

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
                         AllocateFor(*read).ok())) {
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

absl::Status Connection::AllocateFor(IncomingRead& read) {
  RegisteredMemory& memory = poller_->context().memory();
  if (read.may_be_joint() && joint_memory_ == nullptr &&
      poller_->context().device()->reads_jointly()) {
    joint_memory_ = std::make_unique<JointMemory>(&memory);
    poller_->Schedule(
        &joint_timer_,
        Poller::NowNs() + absl::ToInt64Nanoseconds(JointMemory::kCheck));
  }
  return read.Allocate(memory, joint_memory_.get());
}

void Connection::OnJointTimer() {
  if (!joint_memory_->StaysInUse()) {
    joint_memory_.reset();
    return;
  }
  poller_->Schedule(&joint_timer_, Poller::NowNs() + absl::ToInt64Nanoseconds(
                                                         JointMemory::kCheck));
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
        status = AllocateFor(*waiting.read);
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

}  // namespace rdma
