// The receiving half of a QP: matches packets with posted receives and puts the
// data there.
//
// A SEND that is described, not inline, is copied straight out of the sender's
// memory into the receive, in pieces where it is long; its receive is taken off
// the queue at the start. A SEND without a receive waits at the head of the
// link (receiver not ready) until one is posted, or is refused once the
// sender's retries would be used up.
//
//   switch (responder.Receive(packet, &budget_bytes)) ...
//
// Thread rule: as the QP.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_RESPONDER_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_RESPONDER_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/base/attributes.h"
#include "rdma_transport/software/engine/link.h"
#include "rdma_transport/software/engine/qp_context.h"
#include "rdma_transport/software/engine/receive_queue.h"

namespace rdma::soft {

// The time that an encoded RNR NAK timer stands for (IBTA volume 1, 9.7.5.2.8).
int64_t RnrTimerNs(uint8_t min_rnr_timer);

class Responder {
 public:
  enum class Result {
    kConsumed,
    kNotReady,   // no receive is posted
    kMore,       // the budget is used up
    kNotYet,     // the sender's memory is not here yet
    kFailed,     // the receive failed, and was completed; the QP goes to ERR
    kViolation,  // the peer broke the protocol
  };

  // `srq` may be null: the QP has a receive queue of its own then.
  Responder(const QpContext* qp, SharedReceiveQueue* srq,
            const ibv_qp_cap& cap);
  ~Responder();

  // ibv_post_recv(3) in a state that admits it.
  int Post(ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

  // Takes a SEND or WRITE_WITH_IMM, the next packet of the link.
  Result Receive(const Packet& packet, uint64_t* budget_bytes);

  // Receive for the link's next packet, a small one that begins with `word`,
  // where nothing is unusual about it and its receive; `received` is the
  // completion, to be filled in. False: Receive it; nothing happened.
  // REQUIRES: TakesSmall(). `link` is the QP's.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool ReceiveSmall(Link* link, uint64_t word,
                                                 ibv_wc* received) {
    ReceiveQueue& queue = *receives_;
    const uint32_t bytes = PayloadBytesOf(word);
    if (bytes > kMaxPayloadBytes || queue.empty()) [[unlikely]]
      return false;
    const ReceiveWqe* const wqe = queue.Take();
    const ibv_sge& sge = *wqe->sges();
    if (wqe->sge_count == 0 || bytes > sge.length) [[unlikely]] {
      queue.PutBack();
      return false;
    }
    if (!MayReceiveInto(sge)) [[unlikely]] {
      queue.PutBack();
      return false;
    }
    CompleteSmall(wqe->wr_id, word, bytes, received);
    link->TakeSmall(reinterpret_cast<void*>(sge.addr), bytes);
    if (queue.IsBelowLimit()) [[unlikely]]
      srq_->RaiseLimit();
    return true;
  }

  // The same for a described one whose bytes are in few pieces, within the
  // budget, and here already. False: what the receive's memory held is lost.
  bool ReceiveDescribed(Link* link, uint64_t word, uint64_t* budget_bytes,
                        ibv_wc* received);

  // A packet waits for a receive, or is half copied.
  bool NeedsService() const { return waits_for_receive() || held_.has_value(); }
  bool TakesSmall() const { return !discarding_ && !NeedsService(); }
  bool waits_for_receive() const { return not_ready_since_ns_ != 0; }
  // The sender was refused: what it sent behind that is dropped, and must not
  // be acknowledged.
  bool discarding() const { return discarding_; }

  // The QP's link is there.
  void OnConnected();
  // How long a sender without a receive waits: retry 7 is for ever.
  void SetRnr(uint8_t min_rnr_timer, uint8_t peer_rnr_retry) {
    min_rnr_timer_ = min_rnr_timer;
    peer_rnr_retry_ = peer_rnr_retry;
  }
  void SetMinRnrTimer(uint8_t value) { min_rnr_timer_ = value; }

  // Completes what is posted, and what is half copied, with WR_FLUSH_ERR.
  void Flush();
  // Forgets everything; nothing completes.
  void Reset();

 private:
  // A described SEND on its way.
  struct Held {
    uint64_t wr_id;
    uint32_t sge_count;
    uint32_t descriptor_count;
    uint64_t total_bytes;
    uint64_t bytes_done;
    uint32_t descriptor;         // the current one
    uint32_t descriptor_offset;  // in it
    int64_t waiting_since_ns;
    std::array<ibv_sge, kMaxSges> sges;
    std::array<Descriptor, kMaxSges> descriptors;
  };

  const ReceiveWqe* Front() const { return receives_->Front(); }
  void Pop() {
    receives_->Pop();
    if (receives_->IsBelowLimit()) [[unlikely]]
      srq_->RaiseLimit();
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE bool MayReceiveInto(const ibv_sge& sge) {
    KnownKey& key = known_keys_.PlaceOf(sge.lkey);
    return key.Allows(sge.lkey, sge.addr, sge.length) || LearnKey(sge, &key);
  }
  bool LearnKey(const ibv_sge& sge, KnownKey* key);

  // In three stores, where a copy and what differs are six.
  void CompleteSmall(uint64_t wr_id, uint64_t word, uint32_t bytes,
                     ibv_wc* received) const {
    using Words [[gnu::vector_size(16)]] = uint64_t;
    static_assert(
        sizeof(ibv_wc) == 3 * sizeof(Words) && offsetof(ibv_wc, status) == 8 &&
        offsetof(ibv_wc, opcode) == 12 && offsetof(ibv_wc, byte_len) == 20 &&
        offsetof(ibv_wc, imm_data) == 24 && offsetof(ibv_wc, qp_num) == 28 &&
        offsetof(ibv_wc, src_qp) == 32);
    static_assert(IBV_WC_SUCCESS == 0 && IBV_WC_RECV == 128);
    const Words first = {wr_id, uint64_t{IBV_WC_RECV} << 32};
    const Words second = {
        uint64_t{bytes} << 32,
        ImmediateOf(word) | uint64_t{small_completion_.qp_num} << 32};
    constexpr size_t kRest = 2 * sizeof(Words);
    auto* const out = reinterpret_cast<std::byte*>(received);
    std::memcpy(out, &first, sizeof(first));
    std::memcpy(out + sizeof(first), &second, sizeof(second));
    std::memcpy(out + kRest,
                reinterpret_cast<const std::byte*>(&small_completion_) + kRest,
                sizeof(*received) - kRest);
  }

  Result OnNotReady();
  void OnReady();
  Result ReceiveInline(const Packet& packet, const ReceiveWqe& wqe);
  Result ReceiveImmediate(const Packet& packet, const ReceiveWqe& wqe);
  // Takes the receive off its queue for a described SEND.
  Result Hold(const Packet& packet, const ReceiveWqe& wqe);
  Result ContinueHeld(const Packet& packet, uint64_t* budget_bytes);
  Result CopyPiece(uint64_t* budget_bytes);

  // Whether the receive takes `bytes`: IBV_WC_SUCCESS, LOC_LEN_ERR or
  // LOC_PROT_ERR.
  ibv_wc_status CheckRoom(const ibv_sge* sges, uint32_t count,
                          uint64_t bytes) const;
  Result Finish(const Packet& packet, uint64_t wr_id, uint32_t byte_len);
  Result FailReceive(uint64_t wr_id, ibv_wc_status status);
  void Refuse(ibv_wc_status status);
  void CompleteFlushed(uint64_t wr_id);

  const QpContext* const qp_;
  SharedReceiveQueue* const srq_;
  ReceiveQueue queue_;            // without an SRQ
  ReceiveQueue* const receives_;  // the one that there is
  KnownKeys known_keys_;          // of receives that were taken
  ibv_wc small_completion_ = {};  // a small packet's, but for what differs
  std::optional<Held> held_;
  bool discarding_ = false;
  uint8_t min_rnr_timer_ = 0;
  uint8_t peer_rnr_retry_ = 7;
  int64_t not_ready_since_ns_ = 0;  // 0: ready
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_RESPONDER_H_
