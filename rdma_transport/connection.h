// One connection: a QP pair to one peer, and the calls on it.
//
// Turns what calls want to say into frames (eager, or with an offer), keeps to
// the peer's credits and the send queue's slots, reads what the peer offers,
// and hands arriving frames to the calls. Both sides of a connection are this
// class; only the client opens calls.
//
// Life: Connect or Accept makes it; its owner hears OnConnectionUp, then once
// OnConnectionDown. Close, from whichever side or fault, is the one way down:
// all calls are closed, the QP flushes, and when nothing of it is outstanding
// any more the poller deletes it.
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_CONNECTION_H_
#define VERBENA_RDMA_TRANSPORT_CONNECTION_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rdma_transport/call.h"
#include "rdma_transport/call_delivery.h"
#include "rdma_transport/credit_window.h"
#include "rdma_transport/device_use.h"
#include "rdma_transport/frame.h"
#include "rdma_transport/front_ring.h"
#include "rdma_transport/handshake.h"
#include "rdma_transport/joint_memory.h"
#include "rdma_transport/poller.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/recycled_queue.h"
#include "rdma_transport/rendezvous.h"
#include "rdma_transport/send_queue.h"
#include "rdma_transport/verbs/queues.h"
#include "rpc/transport.h"

namespace rdma {

class Connection;

// A channel's endpoint, or a server.
class ConnectionOwner : public CallOwner {
 public:
  virtual void OnConnectionUp(Connection& connection) = 0;
  // The last one; the connection must not be used any more. `was_up`: it had
  // been up before.
  virtual void OnConnectionDown(Connection& connection, const absl::Status& why,
                                bool was_up) = 0;
  // The peer takes no further calls on this connection.
  virtual void OnGoAway(Connection& connection) = 0;
  // Client, once it wants to hear of it (Connection::TellOfGoneCalls): a call
  // of the connection is over, and its slot is free.
  virtual void OnCallGone(Connection& connection) = 0;
  // Client: the path of a method, which stays where it is.
  virtual std::string_view PathOf(uint32_t method) = 0;
  // Server: see rpc::ServerSink::OnMethod.
  virtual const void* OnMethod(std::string_view path) = 0;

 protected:
  ~ConnectionOwner() = default;
};

// Slots of an idle connection's send queue that the CQ has entries for; see
// docs/flow_control.md.
inline constexpr uint32_t kIdleSendSlots = 16;
// Of one that sends often: so many that every SendQueue::kSignalEvery-th send
// asks for a completion, and no more.
inline constexpr uint32_t kBusySendSlots = 2 * SendQueue::kSignalEvery;

class Connection final : public PolledConnection,
                         public CmEventHandler,
                         public GrowingMessageOwner,
                         public ArrivingMessageOwner,
                         public MessagesBeingRead::Waiter {
 public:
  // Starts connecting. The owner hears OnConnectionUp or OnConnectionDown
  // later.
  static absl::StatusOr<Connection*> Connect(
      Poller* poller, CallDelivery* delivery, ConnectionOwner* owner,
      const SocketAddress& address, const rpc::TransportOptions& options);
  // Answers a connection request: accepts it, or rejects it and says why to
  // both sides (the status returned here is for this side's log). Takes
  // `event.id`.
  static absl::StatusOr<Connection*> Accept(
      Poller* poller, CallDelivery* delivery, ConnectionOwner* owner,
      const CmEvent& event, const rpc::TransportOptions& options);
  ~Connection() override;

  // Client: opens `call` with its first frame. May close the call.
  void OpenCall(Call& call, rpc::OutgoingFrame& frame);
  // The same, in the caller: call_sending.h.
  void OpenCallInLine(Call& call, rpc::OutgoingFrame& frame);
  // Sends a further frame; a server's `end` ends the call. True: it is sent;
  // else the call's sink hears OnSent, unless it is the last.
  bool SendData(Call& call, rpc::OutgoingFrame& frame);
  // The same for a call of this connection, in the caller: call_sending.h.
  bool SendDataInLine(Call& call, rpc::OutgoingFrame& frame);
  // The call's application has taken so much; see ClientTransport::Release.
  void Release(Call& call, uint64_t window_bytes, bool drained);
  // Client: the call's last frame is about to be delivered.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void FinishCall(Call& call) {
    DetachCall(call);
    delivery_->CloseAfterLastFrame(call);
  }
  // Ends the call here, and tells the peer. `not_run`: no handler saw it, which
  // it finds out by itself where none was called.
  void ResetCall(Call& call, const absl::Status& why, bool not_run = false);
  // Tells the peer that the offer with the call's opening has been read.
  void SendDone(Call& call);
  // Server: asks the client to open no further calls, and to close the
  // connection after its last one. Those that are opened all the same, as they
  // crossed this on the way, are served.
  void SendGoAway();
  // Server: the same, and refuses calls from now on, as not run.
  void RefuseCalls();
  // Server: the same, and ends those that run with `why`.
  void EndCalls(const absl::Status& why);

  // Closes the connection; see above. Later ones have no effect.
  void Close(const absl::Status& why);
  // The same once the peer has everything that was sent; a server's then knows
  // which of its calls did not run.
  void CloseWhenFlushed(const absl::Status& why);

  bool up() const { return state_ == State::kUp; }
  // Client: its owner waits for slots from now on, or for the last call to go.
  void TellOfGoneCalls() { tell_of_gone_calls_ = true; }
  // Whether a further call can be opened: there is a free slot.
  bool HasFreeSlot() const {
    return !free_slots_.empty() || slots_.size() < peer_max_calls_;
  }
  size_t live_calls() const { return live_calls_; }
  // That were received, keepalive and the like left out.
  uint64_t frames_of_calls() const {
    return received_frames_ - received_credit_frames_;
  }
  // Frames that wait for credits or for the device. A stream's window that is
  // to grow counts once, however often.
  size_t waiting_frames() const { return queue_.size() + due_windows_.size(); }
  const std::string& peer() const { return peer_name_; }

  // Keeps the object (not the connection) alive.
  void Pin() { ++pins_; }
  void Unpin() {
    if (--pins_ == 0 && state_ == State::kClosing) [[unlikely]]
      MaybeFinish();
  }

  // PolledConnection, CmEventHandler, GrowingMessageOwner,
  // ArrivingMessageOwner.
  void OnReceive(const ibv_wc& wc) override;
  void OnReceiveError(const ibv_wc& wc) override;
  void OnSendCompletion(const ibv_wc& wc) override;
  void Flush() override;
  void OnDeviceError(const absl::Status& why, bool completions_lost) override;
  void OnPolled() override;
  void GiveBackCompletions() override;
  void OnCmEvent(CmEvent& event) override;
  void OfferMore(GrowingMessage& message) override;
  void EndGrowing(const GrowingMessage& message,
                  const absl::Status& why) override;
  void ReadOn() override { poller_->MarkDirty(this); }
  void StopReading(const ArrivingMessage& message) override;

  // MessagesBeingRead::Waiter:
  void OnTurn() override { poller_->MarkDirty(this); }

 private:
  enum class State { kConnecting, kUp, kClosing };
  static constexpr size_t kMaxInlineBytes = kWishedInlineBytes;
  // Calls that a client may have open at once.
  static constexpr uint32_t kMaxCalls = 1u << 16;
  // Frames that wait, at most; see docs/flow_control.md. A peer that takes what
  // it is sent has an answer for each call, and another frame.
  static constexpr size_t kMostWaitingFrames = 2 * kMaxCalls;
  // Frames granted to an idle connection; see docs/flow_control.md.
  static constexpr uint32_t kInitialWindow = 3;
  // Without calls a peer is asked for a sign of life after so many times
  // keepalive_time, or not at all where the connection manager tells of dead
  // ones: nobody waits for one that is merely stopped.
  static constexpr int kRarely = 6;
  static_assert(kInitialWindow >= kMinInitialCredits);

  // A frame on its way out. `header` and `small_message` are borrowed; Queue
  // copies them.
  struct Outgoing {
    FrameFields fields;
    absl::Span<const std::byte> header;
    absl::Span<const std::byte> small_message;
    rpc::BufferChain message;
    std::shared_ptr<GrowingMessage> growing;  // message's, or null
    rpc::BufferChain attachment;
    // SEND with invalidate of this key, if not 0.
    uint32_t invalidate_rkey = 0;
    bool says_done = false;  // for the call's offer, besides
    bool signaled = false;
    absl::Time deadline = absl::InfiniteFuture();  // kOpen
    uint32_t method_index = 0;                     // kOpen
    rpc::CallHandle call;
    bool notify_sent = false;
    uint64_t part_of = 0;  // kPart: the offer

    uint64_t message_bytes() const {
      return small_message.size() + message.size();
    }
    size_t prefix_bytes() const {
      return (invalidate_rkey != 0 ? kTagBytes : 0) + PrefixBytes(fields);
    }
  };
  struct QueuedFrame {
    static constexpr size_t kMostKeptBytes = 2048;
    Outgoing out;
    std::vector<std::byte> borrowed;  // stays where it is when this is moved
    void Recycle() {
      out.message.clear();
      out.growing.reset();
      out.attachment.clear();
      if (borrowed.capacity() > kMostKeptBytes) borrowed = {};
    }
  };
  enum class PostResult { kPosted, kBlocked };

  // Calls a function of the connection's.
  template <void (Connection::*kFunction)()>
  class ConnectionTimer final : public Timer {
   public:
    explicit ConnectionTimer(Connection* connection)
        : connection_(connection) {}

   private:
    void OnTimer() override { (connection_->*kFunction)(); }
    Connection* const connection_;
  };

  Connection(Poller* poller, CallDelivery* delivery, ConnectionOwner* owner,
             const rpc::TransportOptions& options, bool is_client);
  absl::Status Init();
  Handshake OwnHandshake() const;
  void ApplyPeerHandshake(const Handshake& peer);
  void OnUp(const CmEvent& event);

  // Calls (connection_calls.cc).
  static size_t FrontBytes(FrameKind kind);
  bool MaySendAtOnce();
  bool MaySendUnplain();
  // What a frame may be: any, or the only one of its direction, with a message
  // and nothing else, as of most calls.
  enum class Extent { kAny, kOnlyMessage };
  bool IsUsual(FrameKind kind, const Call& call) const;
  template <Extent kExtent>
  void SetFields(FrameKind kind, const Call& call,
                 const rpc::OutgoingFrame& frame, FrameFields* fields);
  void PostAtOnce(const FrameFields& fields, uint64_t wr_id, unsigned int flags,
                  Call& call);
  template <Extent kExtent>
  bool SendAtOnce(FrameKind kind, Call& call, rpc::OutgoingFrame& frame);
  bool SendRegistered(FrameKind kind, Call& call, rpc::OutgoingFrame& frame);
  struct Front {
    std::byte* bytes = nullptr;
    bool of_ring = false;  // fronts_'s next
  };
  Front FrontOf(const rpc::Buffer& buffer, size_t bytes);
  // These return as SendData does, and so does Submit.
  bool SendAnyData(Call& call, rpc::OutgoingFrame& frame);
  bool SendNow(Call& call, rpc::OutgoingFrame& frame);
  bool MaySend(Call& call, rpc::OutgoingFrame& frame);
  bool SendSlowly(Call& call, rpc::OutgoingFrame& frame);
  bool SendFrame(Call& call, rpc::OutgoingFrame& frame, Outgoing& out);
  void SendOpening(Call& call, rpc::OutgoingFrame& frame);
  static int64_t WindowBytesOf(const rpc::OutgoingFrame& frame);
  // Copies what of a frame is borrowed, and returns where it ends.
  static std::byte* Gather(const rpc::OutgoingFrame& frame, std::byte* to);
  // Copies what follows, which is in buffers, and lets go of those.
  static void TakeBuffers(rpc::OutgoingFrame& frame, std::byte* to);
  void AfterAnswer(Call& call);
  void EndAnswered(const Call& call);
  void SendHeldBack(Call& call);
  void GrantStreamWindow(const Call& call, int64_t bytes);
  void SendWindow(const OfferKey& key, uint32_t bytes);
  // False: some wait still, or the connection is closed.
  bool SendDueWindows();
  void ForgetDueWindowsOfGoneCalls();

  // Sending (connection_send.cc).
  bool Submit(Outgoing& out);
  bool CanSendNow() {
    return state_ == State::kUp && send_credits_.CanSend() && HasSendRoom(1);
  }
  void NotifySent(rpc::CallHandle call);
  bool IsPointless(const Outgoing& out) const;
  absl::Status PrepareOpen(Outgoing& out);
  void Queue(Outgoing& out);
  void FlushQueue();
  // What is left in the queue waits. Closes the connection where it is too
  // much.
  void LeaveQueued();
  // kBlocked leaves `out` as it was; an error is the call's.
  absl::StatusOr<PostResult> Post(Outgoing& out);
  absl::StatusOr<PostResult> PostEager(Outgoing& out, size_t frame_bytes);
  absl::StatusOr<PostResult> PostOffer(Outgoing& out);
  std::vector<ibv_send_wr> MakeBinds(Offer& offer, size_t first);
  bool PostBinds(absl::Span<ibv_send_wr> binds, ibv_send_wr* last);
  bool GatherInPlace(Outgoing& out, size_t front_bytes, ibv_sge* sge,
                     SendEntry* holds);
  // As far as there are buffers, no credit is granted that no receive is posted
  // for: a peer may use it before this turn ends, and where a handler blocks,
  // the turn does not end at all.
  uint16_t GrantCredits() {
    poller_->receive_pool().Replenish();
    return receive_credits_.Grant();
  }
  std::byte* WriteFront(Outgoing& out, std::byte* to);
  void PostSend(Outgoing& out, const ibv_sge* sges, int count, bool is_inline,
                SendEntry* holds, absl::Span<ibv_send_wr> first = {});
  void AfterPost(const Outgoing& out);
  void FailFrame(const Outgoing& out, const absl::Status& why);
  void SendControl(FrameKind kind, const OfferKey& key, uint32_t detail,
                   std::string_view text = {}, uint8_t flags = 0,
                   uint32_t invalidate_rkey = 0);
  void SendCreditsIfDue();
  // Closes the connection where that fails: slots are accounted for, so the QP
  // is broken.
  bool PostWorkRequests(ibv_send_wr* first) {
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(qp_->get(), first, &bad);
    if (error == 0) [[likely]]
      return true;
    FailPost(error, bad);
    return false;
  }
  void FailPost(int error, const ibv_send_wr* bad);
  bool HasSendRoom(uint32_t count) {
    return send_queue_.HasRoom(count) || GrowSendQueue(count);
  }
  bool GrowSendQueue(uint32_t count);
  void DeepenIfBusy();
  void ResizeSendQueue(uint32_t depth);

  // Offers (connection_offer.cc).
  absl::Status ChooseOffers(Outgoing& out, bool* message, bool* attachment);
  absl::Status MakeRegistered(rpc::BufferChain& chain);
  absl::Status AddWindows(Offer& offer);
  absl::Status MakeOffer(Outgoing& out, Offer* offer, size_t* message_segments);
  void AnswerOffer(const OfferKey& key, uint32_t invalidated_rkey, bool all);
  void RevokeOffer(Offer& offer, uint32_t invalidated_rkey);
  void PostInvalidations();
  void FinishOffer(Offer& offer);
  void ExpireOffers(const OfferKey& key, bool wanted);
  void ScheduleOfferTimer();
  void OnOfferTimer();

  // The peer's (connection_read.cc). `buffer`: what `view` is of.
  void StartRead(const FrameView& view, rpc::Buffer&& buffer, Call& call,
                 bool opens);
  absl::Status CheckOfferLimits(const IncomingRead& read) const;
  absl::Status AllocateFor(IncomingRead& read);
  void OnJointTimer();
  // False: the message is to be read as a whole.
  bool MayArrive(const FrameView& view, const Call& call,
                 const IncomingRead& read) const;
  MessagesBeingRead::Turn NextTurn() const;
  bool StartArriving(Call& call, IncomingRead& read);
  struct WaitingRead;
  void AwaitTurn(std::unique_ptr<IncomingRead> read);
  bool AwaitsTurn(WaitingRead& waiting, int64_t now_ns);
  bool AwaitsMemory() const;
  bool MayDeliverArriving(const FrameView& view, const Call& call,
                          const HeldFrame& held) const;
  void RefuseRead(std::unique_ptr<IncomingRead> read, const absl::Status& why);
  // Whether something that the peer offered for the call is still being read.
  bool IsReadingFor(const Call& call) const;
  void RetryWaitingReads();
  void PumpReads();
  void DeliverArriving(IncomingRead& read);
  bool IsFirstOfItsCall(const IncomingRead& read) const;
  void FinishRead(IncomingRead* read);
  void AbandonReads(rpc::CallHandle call);

  // Messages in parts (connection_parts.cc).
  absl::StatusOr<PostResult> PostPart(Outgoing& out);
  void OnPart(const FrameView& view);
  // That of the call's that waits for parts; null: none.
  IncomingRead* FindReadInParts(const OfferKey& key);
  void RefuseParts();
  // RESOURCE_EXHAUSTED: there are too many.
  absl::Status AwaitParts(IncomingRead& read);
  void SchedulePartTimer();
  void OnPartTimer();

  // Receiving (connection_receive.cc).
  void OnAnswer(const ibv_wc& wc);
  void OnAnswerBeside(const ibv_wc& wc, rpc::Buffer&& buffer);
  template <Beside kBeside>
  bool TakeAnswer(const ibv_wc& wc, rpc::Buffer& buffer);
  void OnRequest(const ibv_wc& wc);
  void OnRequestBeside(const ibv_wc& wc, rpc::Buffer&& buffer);
  template <Beside kBeside>
  bool TakeRequest(const ibv_wc& wc, rpc::Buffer& buffer);
  template <FrameKind kKind, Beside kBeside>
  bool Takes(const OnlyMessage<kKind, kBeside>& frame);
  bool TakesUnplain();
  void Account(uint32_t credits);
  bool IsPlain() const;
  void AfterReceive();
  void OnAnyFrame(const ibv_wc& wc, rpc::Buffer&& buffer);
  void OnEarlyFrame(const ibv_wc& wc, rpc::Buffer&& buffer);
  void OnOpen(const FrameView& view, rpc::Buffer&& buffer);
  void OnData(const FrameView& view, rpc::Buffer&& buffer,
              uint32_t invalidated_rkey);
  void RefuseOfferOf(const FrameView& view);
  void OnReset(const FrameView& view);
  void OnCredit(const FrameView& view);
  void OnWindow(const FrameView& view);
  // Takes a frame off the call's window, but for the last, after which there is
  // nothing to hold back. False: it went beyond, and the call is over.
  bool TakeWindow(const FrameView& view, Call& call);
  const char* DefineMethod(const FrameView& view);
  Call* FindCall(const FrameView& view);
  Call* CreateServerCall(uint32_t method, uint32_t sequence);
  void SetTimeout(Call& call, uint64_t timeout_us);
  bool CheckEagerLimits(const FrameView& view, Call& call);
  void RefuseEager(const FrameView& view, Call& call);
  void Deliver(Call& call, const FrameView& view, rpc::Buffer&& buffer,
               bool opens);
  void OnWantCredits();
  absl::Status SetExtraReceives(uint32_t wanted);
  void ProtocolError(std::string_view what);

  void AttachCall(Call& call, uint32_t slot) {
    if (slot >= slots_.size()) [[unlikely]]
      AddSlots(slot + 1);
    AttachCallTo(call, slot);
  }
  // REQUIRES: there is such a slot.
  void AttachCallTo(Call& call, uint32_t slot) {
    slots_[slot] = &call;
    call.slot = slot;
    call.connection = this;
    ++live_calls_;
    if (asks_rarely_) [[unlikely]]
      AskAsUsual();
  }
  void AddSlots(size_t count);
  void DetachCall(Call& call) {
    if (call.connection != this) return;
    if (is_client_) {
      DetachClientCall(call);
    } else {
      DetachServerCall(call);
    }
  }
  // The same for calls of this connection, by its side.
  void DetachServerCall(Call& call) {
    slots_[call.slot] = nullptr;
    call.connection = nullptr;
    --live_calls_;
  }
  void DetachClientCall(Call& call) {
    DetachServerCall(call);
    free_slots_.push_back(call.slot);
    if (tell_of_gone_calls_ && state_ == State::kUp) [[unlikely]]
      owner_->OnCallGone(*this);
  }
  void CloseAsPeerGone();
  bool IsAnsweredInFull(const Call& call) const;
  void PostMarker();
  void CloseIfFlushed();
  bool PostLastFrame();
  void OnGoAway(const FrameView& view);
  void EndNotRun(uint32_t last_run);
  void CloseQuietly(Call& call);
  bool HasSurplus() const;
  void ArmShrinkTimer();
  void OnShrinkTimer();
  void ScheduleKeepalive(absl::Duration after);
  void OnKeepaliveTimer();
  void AskAsUsual();
  void MaybeFinish();

  uint64_t frames() const { return sent_frames_ + received_frames_; }

  Poller* const poller_;
  CallDelivery* const delivery_;
  ConnectionOwner* const owner_;
  const rpc::TransportOptions options_;
  const bool is_client_;
  State state_ = State::kConnecting;
  bool buried_ = false;
  bool going_away_ = false;      // server: SendGoAway was called
  bool refusing_calls_ = false;  // server
  bool last_word_said_ = false;  // server
  uint32_t last_opened_ = 0;     // server: the sequence of the last open
  bool tell_of_gone_calls_ = false;
  bool marker_posted_ = false;
  bool completions_lost_ = false;    // they do not tell when it has flushed
  absl::Status close_when_flushed_;  // OK: not asked for
  uint32_t pins_ = 0;
  std::string peer_name_;

  // Offers outlive the QP that could be read through; windows go after it.
  std::vector<std::unique_ptr<MemoryWindow>> free_windows_;
  OfferTable offers_;
  // What its READs bring may still be written where the QP is; null: none yet.
  std::unique_ptr<JointMemory> joint_memory_;
  std::unique_ptr<QueuePair> qp_;
  CmId* id_ = nullptr;

  uint32_t frame_limit_ = 0;  // largest frame the peer takes
  uint32_t eager_limit_ = 0;  // largest frame to send without an offer
  uint32_t inline_limit_ = 0;
  uint32_t at_once_limit_ = 0;           // of both; see SendAtOnce
  uint32_t max_reads_ = 1;               // READs outstanding at once
  bool use_windows_ = false;             // grant by windows
  unsigned int invalidation_flags_ = 0;  // Device::invalidation_flags
  bool peer_windows_ = false;            // the peer does
  uint32_t peer_max_calls_ = 0;
  uint64_t peer_max_message_bytes_ = 0;
  uint64_t peer_max_attachment_bytes_ = 0;

  // What SendAtOnce and SendRegistered post: they set what differs each time.
  ibv_sge at_once_sges_[2] = {};
  ibv_send_wr at_once_wr_ = {
      .sg_list = at_once_sges_, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM};
  FrontRing fronts_;
  SendQueue send_queue_;
  SendCredits send_credits_;
  uint32_t peer_initial_credits_ = 0;
  ReceiveCredits receive_credits_;
  uint32_t reserved_receives_ = 0;
  uint32_t reserved_completions_ = 0;
  uint32_t qp_send_depth_ = 0;  // what send_queue_ can grow to
  bool starved_ = false;        // a frame waited for credits
  // It is up and stays so, and there is nothing but small frames: none waits,
  // and nothing large is under way either way. The short ways look at this
  // alone. Whatever ends that says so; MaySendUnplain and TakesUnplain see
  // where it is so again.
  bool is_plain_ = false;
  uint64_t sent_frames_ = 0;
  uint64_t received_frames_ = 0;
  uint64_t shrink_frames_ = 0;
  uint64_t completion_frames_ = 0;  // frames() when a send completed
  uint64_t received_credit_frames_ = 0;
  uint64_t keepalive_frames_ = 0;     // received_frames_ at the last look
  uint32_t keepalive_sequence_ = 1;   // next_sequence_ then
  uint64_t keepalive_completed_ = 0;  // send_queue_.completed() then
  bool sign_wanted_ = false;          // from the peer, since then
  bool takes_nothing_ = false;        // and there was no room to ask it then
  bool answer_due_ = false;           // to a peer that wants a sign
  RecycledQueue<QueuedFrame> queue_;
  bool queued_lately_ = false;  // since the shrink timer's last look
  // What calls' windows are to grow by once there are credits, by handle: one
  // entry a call, however often its application takes something. A window frame
  // in queue_ keeps the place of all of them.
  std::map<uint64_t, uint64_t> due_windows_;
  uint64_t last_due_window_ = 0;  // the handle of the one sent last

  // Invalidations that found no room in the send queue.
  std::deque<std::pair<uint64_t, uint32_t>> invalidations_;  // offer, key

  std::vector<Call*> slots_;
  std::vector<uint32_t> free_slots_;  // client
  size_t live_calls_ = 0;
  bool asks_rarely_ = false;  // see kRarely
  uint32_t next_sequence_ = 1;
  // Server, by slot: the last call that was answered before its client had sent
  // everything. The answer said done for all that the client offered with it.
  std::vector<uint32_t> answered_early_;

  // Client: the numbers under which the peer knows methods, plus one, by the
  // endpoint's; server: what they are.
  std::vector<uint32_t> method_numbers_;
  uint32_t next_method_number_ = 0;
  std::vector<std::unique_ptr<ServerMethod>> methods_;  // calls refer to them
  MethodLimit method_limit_;

  struct WaitingRead {
    std::unique_ptr<IncomingRead> read;
    int64_t give_up_ns;  // its turn, or the message
    bool for_turn = false;
    uint64_t turn = 0;  // the one that it waits behind
  };
  // Client: what came before the connection was reported as up.
  std::vector<std::pair<ibv_wc, rpc::Buffer>> early_;

  std::deque<WaitingRead> waiting_reads_;  // for memory, or their turn
  std::deque<std::unique_ptr<IncomingRead>> reads_;
  uint32_t reads_outstanding_ = 0;

  ConnectionTimer<&Connection::OnShrinkTimer> shrink_timer_{this};
  ConnectionTimer<&Connection::RetryWaitingReads> memory_timer_{this};
  ConnectionTimer<&Connection::OnOfferTimer> offer_timer_{this};
  ConnectionTimer<&Connection::OnPartTimer> part_timer_{this};
  ConnectionTimer<&Connection::OnKeepaliveTimer> keepalive_timer_{this};
  ConnectionTimer<&Connection::OnJointTimer> joint_timer_{this};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CONNECTION_H_
