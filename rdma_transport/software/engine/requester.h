// The sending half of a QP: takes work requests, starts them in order, and
// completes them in order.
//
// SENDs go into the link within post_send while nothing older blocks them.
// READs and atomics are carried out a piece each turn, some by the peer
// (joint_reader.h), and later SENDs and
// WRITEs may overtake them unless fenced, as on hardware: a long READ does not
// delay a short message. WRITEs are not overtaken.
//
//   if (int error = requester.Post(wr, &bad_wr)) ...
//   // A work request failed:
//   if (requester.Progress(&budget)) qp->EnterError();
//
// Thread rule: as the QP.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REQUESTER_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REQUESTER_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>

#include "rdma_transport/software/engine/joint_reader.h"
#include "rdma_transport/software/engine/qp_context.h"
#include "rdma_transport/software/engine/remote_access.h"
#include "rdma_transport/software/engine/send_queue.h"

namespace rdma::soft {

// READs and atomics of a QP that are started and not over; ibv_device_attr's
// max_qp_rd_atom.
inline constexpr uint32_t kMaxReads = 128;

// Slots of started READs, oldest first. In front are those that are read, but
// for pieces that the peer copies; then comes the one that is next.
class ReadFifo {
 public:
  bool empty() const { return head_ == tail_; }
  uint32_t size() const { return tail_ - head_; }
  uint32_t front() const { return slots_[head_ % kMaxReads]; }
  bool has_next() const { return next_ != tail_; }
  uint32_t next() const { return slots_[next_ % kMaxReads]; }
  bool next_is_front() const { return next_ == head_; }
  // REQUIRES: size() < kMaxReads.
  void push(uint32_t slot) { slots_[tail_++ % kMaxReads] = slot; }
  void advance() { ++next_; }
  // REQUIRES: !next_is_front().
  void pop() { ++head_; }
  void clear() { head_ = next_ = tail_; }

 private:
  uint32_t head_ = 0;
  uint32_t next_ = 0;
  uint32_t tail_ = 0;
  std::array<uint32_t, kMaxReads> slots_;
};

class Requester {
 public:
  // Who only awaits acknowledgements looks for them once in so many turns.
  static constexpr uint32_t kTurnsPerLook = 8;

  // REQUIRES: `qp` outlives this.
  Requester(const QpContext* qp, const ibv_qp_cap& cap, bool signal_all);
  ~Requester();

  // Post for what most posts are, where nothing is in its way: a single small
  // inline SEND with immediate, unsignaled. False: Post it; nothing happened.
  bool PostSmall(const ibv_send_wr& wr);
  // The same for the smallest, in two steps, neither of which calls anything.
  // False: PostSmall it.
  bool MayPostShort(const ibv_send_wr& wr) const {
    return IsSmall(wr) && wr.sg_list->length <= kShortBytes &&
           qp_->link->MayPutShort();
  }
  // True: the link's Wake must follow. REQUIRES: MayPostShort(wr).
  [[nodiscard]] bool PostShort(const ibv_send_wr& wr) {
    const ibv_sge& sge = *wr.sg_list;
    const bool must_wake = qp_->link->PutShort(
        wr.imm_data, reinterpret_cast<const std::byte*>(sge.addr), sge.length);
    NoteSent(wr, sge.length, IBV_SEND_INLINE);
    return must_wake;
  }
  // The same for a single SEND with immediate out of up to kLineDescriptors
  // pieces of memory, of more bytes than go into a packet.
  bool PostDescribed(const ibv_send_wr& wr);
  // ibv_post_send(3) in a state that admits it. Work requests that can start
  // do; the others wait for Progress. Returns 0 or an errno value.
  int Post(ibv_send_wr* wr, ibv_send_wr** bad_wr);

  // Whether Progress may have something to do.
  bool NeedsService() const {
    return signaled_pending_ != 0 || sq_.started_ != sq_.tail_ ||
           !reads_.empty() || failed_ ||
           (!running_ && sq_.done_ != sq_.started_);  // draining, as in SQD
  }
  // Everything was sent, the oldest of it is not acknowledged as far as is
  // known yet, and there is more room for the consumer than it waits for.
  bool OnlyAwaitsAcknowledgement() const {
    return sq_.started_ == sq_.tail_ && signaled_pending_ == 1 &&
           reads_.empty() && !failed_ && !sent_ && sq_.done_ != sq_.started_ &&
           sq_.At(sq_.done_).phase == SendWqe::Phase::kSent;
  }
  // A turn of who OnlyAwaitsAcknowledgement. True: Progress would do no more
  // than count it, and it is counted.
  bool PassTurn() {
    if (turns_ + 1 == kTurnsPerLook) return false;
    ++turns_;
    return true;
  }
  // Starts, copies and completes what can be, within the budget. True: a work
  // request failed and was completed, all older ones too; the QP goes to ERR.
  bool Progress(uint64_t* budget_bytes);

  // Whether requests are started, as in RTS; those that were go on without, as
  // in SQD. REQUIRES for running: connected, or SetUnreachable.
  void SetRunning(bool running) {
    running_ = running;
    UpdateSmallLimit();
  }
  // RTS without a connection, or to a peer that takes nothing any more: what is
  // posted fails with RETRY_EXC_ERR, as retries to nobody do.
  void SetUnreachable() {
    unreachable_ = true;
    UpdateSmallLimit();
  }
  void SetMaxReads(uint32_t max_reads) { max_reads_ = max_reads; }

  // The responder refused the oldest SEND that it did not acknowledge.
  void OnRefused(ibv_wc_status status);
  // The peer's QP is in ERR: what is not over will never be.
  void OnPeerGone();

  // Completes what is over, then everything else with WR_FLUSH_ERR.
  void Flush();
  // Forgets everything; nothing completes.
  void Reset();

  void Retire(uint32_t slots) { sq_.free_ += slots; }
  // All that was started is over.
  bool drained() const;

 private:
  enum class StartResult {
    kStarted,
    kBlocked,  // and everything behind it
    kBusy,     // blocked by work of our own: no peer will ring for it
  };
  // Where the bytes of a SEND come from: the caller's work request, or its
  // copy.
  struct Source {
    const ibv_sge* sges;
    uint32_t count;
    bool inline_data;
  };

  // What PostSmall takes, but for the link's room.
  bool IsSmall(const ibv_send_wr& wr) const {
    constexpr unsigned int kFlags = IBV_SEND_INLINE | IBV_SEND_SIGNALED |
                                    IBV_SEND_SOLICITED | IBV_SEND_FENCE;
    return wr.next == nullptr && wr.opcode == IBV_WR_SEND_WITH_IMM &&
           wr.num_sge == 1 && (wr.send_flags & kFlags) == IBV_SEND_INLINE &&
           wr.sg_list->length <= small_limit_now_ && !sq_.full();
  }
  // Takes a slot for a SEND with immediate that was just sent, in one packet.
  // What only those need that are not sent yet is left out.
  void NoteSent(const ibv_send_wr& wr, uint32_t bytes, uint8_t flags) {
    sent_position_ = qp_->link->sent_position();
    SendWqe& wqe = sq_.At(sq_.tail_);
    wqe.wr_id = wr.wr_id;
    wqe.position = sent_position_;
    wqe.byte_len = bytes;
    wqe.status = IBV_WC_SUCCESS;
    wqe.opcode = IBV_WR_SEND_WITH_IMM;
    wqe.send_flags = flags;
    wqe.phase = SendWqe::Phase::kSent;
    wqe.sge_count = 1;
    sq_.started_ = ++sq_.tail_;
  }
  int PostOne(const ibv_send_wr& wr);
  int Validate(const ibv_send_wr& wr, uint64_t* total_bytes) const;

  // Nothing but room stands in its way.
  bool MayStart(const SendWqe& wqe) const;
  // It waits first in line, and part of it was done: it is not held back.
  bool IsHalfDone(const SendWqe& wqe) const;
  // Starts what waits, in order.
  void StartWaiting(uint64_t* budget_bytes);
  StartResult Start(uint32_t index, uint64_t* budget_bytes);
  StartResult StartSend(SendWqe& wqe, const Source& source);
  StartResult StartRead(uint32_t index);
  StartResult StartWrite(uint32_t index, uint64_t* budget_bytes);
  StartResult StartBind(uint32_t index);
  StartResult StartInvalidate(uint32_t index);
  // Fills `descriptors` from the SGEs. kStarted: it did.
  StartResult Describe(SendWqe& wqe, const Source& source,
                       Descriptor* descriptors, uint32_t* count);
  StartResult PutIntoLink(SendWqe& wqe, const Packet& packet,
                          const ConstBytes* parts, int part_count);

  // The peer may do the pieces that are on offer while more is being posted.
  enum class Offers { kLeave, kTakeBack };
  void RunReads(uint64_t* budget_bytes, Offers offers);
  // Each reads some. False: there is nothing, or not now.
  bool MayReadNext() const;
  bool ReadNext(uint64_t* budget_bytes);
  bool ReadTakenBack(uint64_t* budget_bytes);
  void CollectPieces();
  void OnReadFailed(uint32_t index);
  bool IsBehindFailure(uint32_t index) const {
    return failed_ && static_cast<int32_t>(index - failed_index_) >= 0;
  }
  void ForgetReads() {
    reads_.clear();
    joint_.reset();
    pieces_awaited_since_ns_ = 0;
  }
  // Marks it failed: nothing behind it starts any more.
  StartResult Fail(SendWqe& wqe, ibv_wc_status status);
  void OnAccessFault(const SendWqe& wqe);

  // True: the failed work request was reached.
  bool CompleteFinished();
  bool IsAcknowledged(uint64_t position);
  // Asks the peer to acknowledge the packet that is sent next.
  void AskForNext();
  // Where what was asked for has come: asks for the next that somebody waits
  // for. True: something more was acknowledged meanwhile.
  bool AskAgain();
  bool Ask(uint64_t position);
  void AskForNothing();
  void Complete(SendWqe& wqe, ibv_wc_status status);
  void UpdateBusy();
  // After each change of what it depends on.
  void UpdateSmallLimit() {
    small_limit_now_ =
        running_ && !unreachable_ && !failed_ && sq_.started_ == sq_.tail_
            ? small_limit_
            : -1;
  }
  void WakePeer();

  const QpContext* const qp_;
  const ibv_qp_cap cap_;
  const bool signal_all_;
  // PostSmall takes requests of up to this many bytes; negative: none. Now:
  // where nothing that it does not look at is in their way.
  const int64_t small_limit_;
  int64_t small_limit_now_ = -1;
  const int described_sges_;  // that PostDescribed takes
  SendQueue sq_;

  bool running_ = false;
  bool unreachable_ = false;
  bool failed_ = false;  // the work request at failed_index_ did
  bool blocked_by_own_work_ = false;
  bool waits_for_room_ = false;  // the first one that was not started does
  bool busy_ = false;            // counted in the CQ's busy targets
  bool sent_solicited_ = false;
  bool sent_ = false;  // since the last Wake
  uint32_t failed_index_ = 0;
  uint32_t signaled_pending_ = 0;  // posted, and not completed
  uint32_t newest_signaled_ = 0;   // its slot, if any is pending
  uint32_t turns_ = 0;             // since a look at acknowledgements
  uint32_t reported_ = 0;  // slots before this one are covered by a completion
  uint32_t max_reads_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t sent_position_ = 0;  // of the last packet
  uint64_t wanted_ = 0;         // which acknowledgement was asked for; 0: none
  ReadFifo reads_;              // slots in phase kReading
  // Since when nothing but pieces that the peer copies is awaited; 0: not so.
  int64_t pieces_awaited_since_ns_ = 0;
  std::unique_ptr<JointReader> joint_;  // null before the first such READ
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REQUESTER_H_
