// An RC queue pair: its state, its link to the peer's QP, and its two halves,
// the requester (what it sends) and the responder (what it receives).
//
//   QueuePair qp(device parts, pd, init);
//   qp.Modify(attr, IBV_QP_STATE | ...);          // RESET -> INIT
//   qp.Connect(std::move(link), {...});           // INIT -> RTR -> RTS
//   qp.PostSend(wr, &bad_wr);
//   ... its CQs call Progress() when they are polled
//
// Thread rule: as its CQs; OnHangUp from any thread.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QUEUE_PAIR_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "rdma_transport/software/engine/async_events.h"
#include "rdma_transport/software/engine/link.h"
#include "rdma_transport/software/engine/link_registry.h"
#include "rdma_transport/software/engine/poll_target.h"
#include "rdma_transport/software/engine/qp_context.h"
#include "rdma_transport/software/engine/read_helper.h"
#include "rdma_transport/software/engine/receive_queue.h"
#include "rdma_transport/software/engine/requester.h"
#include "rdma_transport/software/engine/responder.h"

namespace rdma::soft {

class QueuePair final : public ibv_qp,
                        public PollTarget,
                        public HangUpObserver {
 public:
  // The device's parts, which outlive the QP.
  struct Environment {
    ibv_context* context = nullptr;
    MemoryRegistry* memory = nullptr;
    LinkRegistry* links = nullptr;
    AsyncEvents* async_events = nullptr;
    Clock* clock = nullptr;
  };

  // What two sides agree on when they connect.
  struct ConnectAttributes {
    uint32_t peer_qp_num = 0;
    uint8_t max_rd_atomic = 0;
    uint8_t max_dest_rd_atomic = 0;
    uint8_t min_rnr_timer = 0;
    uint8_t retry_count = 0;
    uint8_t rnr_retry = 0;       // of our sends, as the peer wants it
    uint8_t peer_rnr_retry = 0;  // of the peer's sends, as we want it
  };

  // REQUIRES: `init` was checked (Device::CreateQp).
  QueuePair(const Environment& environment, uint32_t qp_num,
            ProtectionDomain* pd, const ibv_qp_init_attr& init);
  // Waits for the acknowledgement of its asynchronous events.
  // REQUIRES: Detach was called.
  ~QueuePair();

  // Hangs up, and leaves its CQs and SRQ, with its completions.
  void Detach();

  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // ibv_modify_qp(3), ibv_query_qp(3).
  int Modify(const ibv_qp_attr& attributes, int mask);
  void Query(ibv_qp_attr* attributes, ibv_qp_init_attr* init) const;

  // ibv_post_send(3), ibv_post_recv(3).
  int PostSend(ibv_send_wr* wr, ibv_send_wr** bad_wr) {
    // It asks for no completion, so nothing follows from it here. What is
    // called is called last: so no register has to be saved for it.
    if (state == IBV_QPS_RTS && requester_.MayPostShort(*wr)) [[likely]] {
      return requester_.PostShort(*wr) ? WakePeer() : 0;
    }
    return PostSendLong(wr, bad_wr);
  }
  int PostReceive(ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

  // Goes from RESET to INIT with what a connection manager sets: all access.
  int Initialize();
  // Goes from INIT to RTS over `link`. ENOSPC: no more descriptors can be
  // watched. REQUIRES: in INIT.
  int Connect(std::shared_ptr<Link> link, const ConnectAttributes& attributes);
  // Goes to ERR and hangs up: the peer sees a disconnect, and what both posted
  // is flushed. No effect in RESET.
  void Disconnect();

  const Link* link() const { return link_.get(); }
  // What it admits of its peer, ibv_access_flags.
  uint32_t access() const { return attributes_.qp_access_flags; }
  uint32_t max_send_wr() const { return init_.cap.max_send_wr; }
  ProtectionDomain* protection_domain() const { return context_.pd; }
  uint32_t send_cq_line() const { return context_.send_cq->line_index(); }
  uint32_t recv_cq_line() const { return context_.recv_cq->line_index(); }

  // PollTarget.
  Taken TakeSmall(ibv_wc* completions, ibv_wc* end,
                  uint64_t* budget_bytes) override;
  void Progress() override;
  void ServiceLink() override;
  void Retire(uint32_t slots) override { requester_.Retire(slots); }

  // HangUpObserver: the QP flushes when its CQ is polled next.
  void OnHangUp() override;

 private:
  static constexpr int64_t kPacketsPerTurn = 64;

  enum class Farewell { kTellPeer, kSilent };

  int WakePeer();  // 0
  int PostSendLong(ibv_send_wr* wr, ibv_send_wr** bad_wr);
  void ProgressUnconnected();
  bool ProgressSmall(uint64_t* budget_bytes);
  uint64_t* Budget(uint64_t* own);
  bool MoreToDeliver() const;
  // Takes packets. False: the QP left RTS.
  bool TakePackets(uint64_t* budget_bytes);
  // kOther: the next packet is none that is taken at once.
  enum class AtOnce { kTaken, kNothing, kOther };
  AtOnce TakeAtOnce(Link* link, uint64_t* budget_bytes, ibv_wc* received);
  bool TakeSmallPacket(uint64_t* budget_bytes);
  // kWaits: for the peer or the consumer. kLater: for the next turn.
  enum class PacketResult { kTaken, kWaits, kLater, kEnded };
  PacketResult TakePacket(uint64_t* budget_bytes);
  // `counted`: one of the two below.
  void SetBusy(bool* counted, bool busy);
  void OnViolation(const char* what);
  // The peer rang: CQs that are still armed get a number that it did not ring
  // for.
  void OnRing();

  void MoveTo(ibv_qp_state state);
  void EnterError(Farewell farewell);
  void EnterReset();
  // Before incoming packets are taken, or need not be looked for alone.
  void EndIdleness() {
    if (is_idle_) [[unlikely]]
      TellNotIdle();
  }
  void TellNotIdle();
  void UpdateService();
  void CheckDrained();
  // Lets the peer begin nothing more in our memory, and waits for what it is
  // writing there.
  void CloseLink();
  // Ends the connection's place in this QP.
  void DropLink();
  void Unwatch();

  QpContext context_;
  const Environment environment_;
  const ibv_qp_init_attr init_;
  SharedReceiveQueue* const srq_;
  ibv_qp_attr attributes_ = {};
  std::shared_ptr<Link> link_;
  bool watched_ = false;
  bool receive_busy_ = false;   // counted in the receive CQ's busy targets
  bool help_busy_ = false;      // the same, for the helper
  bool drain_pending_ = false;  // SQ_DRAINED is to be raised
  bool took_other_ = false;     // the last turn took a packet not at once
  Requester requester_;
  Responder responder_;
  ReadHelper helper_;
};

inline QueuePair* FromVerbs(ibv_qp* qp) { return static_cast<QueuePair*>(qp); }
inline QueuePair& FromVerbs(ibv_qp& qp) { return static_cast<QueuePair&>(qp); }

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QUEUE_PAIR_H_
