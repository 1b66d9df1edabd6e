// READ, WRITE and atomics: what a requester does itself in the peer's memory,
// piece by piece.
//
// Each step looks the rkey up anew, because it may be revoked between pieces,
// and checks what the responder's device would check: key, PD, QP, rights and
// bounds (IBTA volume 1, section 9.7.4, "Responder: receiving RDMA requests").
//
//   StepResult result = ReadStep(qp, wqe, detail, sges, &budget_bytes);
//
// Thread rule: as the QP.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REMOTE_ACCESS_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REMOTE_ACCESS_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>

#include "rdma_transport/software/engine/qp_context.h"
#include "rdma_transport/software/engine/send_queue.h"

namespace rdma::soft {

enum class StepResult {
  kDone,    // all bytes were moved
  kMore,    // the budget is used up
  kLater,   // the peer's announcement of the memory is on its way
  kFailed,  // wqe.status says why
};

// Says for its lifetime that we write under a key of the peer's, and orders
// that before the look at the key.
class WritingScope {
 public:
  WritingScope(Link* link, uint32_t key) : link_(link) {
    link_->PublishWriting(key);
    // Pairs with the fences in KeyTable::Revoke and Link::MarkClosed.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  ~WritingScope() { link_->PublishWriting(0); }
  WritingScope(const WritingScope&) = delete;
  WritingScope& operator=(const WritingScope&) = delete;

 private:
  Link* const link_;
};

// Each moves at most `*budget_bytes` and takes what it moved off it. `sges` are
// the work request's local side.
// REQUIRES: qp.link is not null.
StepResult ReadStep(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                    const ibv_sge* sges, uint64_t* budget_bytes);
// A piece of a READ, [offset, offset + bytes) of it: kDone, kLater or kFailed.
StepResult ReadPiece(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                     const ibv_sge* sges, uint64_t offset, uint64_t bytes);
StepResult WriteStep(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                     const ibv_sge* sges, uint64_t* budget_bytes);
// CMP_AND_SWP and FETCH_AND_ADD, atomic with regard to all processes' CPUs and
// devices of this kind (IBV_ATOMIC_GLOB).
StepResult AtomicStep(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                      const ibv_sge* sges);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_REMOTE_ACCESS_H_
