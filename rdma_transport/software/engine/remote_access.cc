#include "rdma_transport/software/engine/remote_access.h"

#include <algorithm>
#include <atomic>

#include "memory/copy_bytes.h"
#include "rdma_transport/software/engine/sge_copy.h"

namespace rdma::soft {
namespace {

StepResult Fail(SendWqe& wqe, ibv_wc_status status) {
  wqe.status = status;
  return StepResult::kFailed;
}

bool CheckLocalSges(const QpContext& qp, const SendWqe& wqe,
                    const ibv_sge* sges, uint32_t access) {
  for (uint32_t i = 0; i < wqe.sge_count; ++i) {
    if (sges[i].length != 0 && !qp.memory->CheckLocal(qp.pd, sges[i], access)) {
      return false;
    }
  }
  return true;
}

// Where a READ stores it names memory by a key, or says that it is any.
bool CheckReadSges(const QpContext& qp, const SendWqe& wqe,
                   const ibv_sge* sges) {
  if (wqe.sge_count == 1 && sges[0].lkey == kReservedLkey) return true;
  return CheckLocalSges(qp, wqe, sges, IBV_ACCESS_LOCAL_WRITE);
}

// Whether the peer grants `needed` to the whole of the work request: SUCCESS,
// or what the responder would answer.
ibv_wc_status FindRemote(const QpContext& qp, const SendWqe& wqe,
                         const SendDetail& detail, uint32_t needed,
                         KeyRange* range) {
  const Link& link = *qp.link;
  if (link.PeerClosed()) return IBV_WC_RETRY_EXC_ERR;
  // A request that its QP does not admit at all is an invalid one.
  if ((link.peer_access() & needed) != needed) return IBV_WC_REM_INV_REQ_ERR;
  const bool granted = link.peer_keys().Find(detail.rkey, range) &&
                       range->Allows(link.peer_pd(), link.peer_qp_num(), needed,
                                     detail.remote_address, wqe.byte_len);
  return granted ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

// Of a request that moves nothing only the peer is asked for, and no key.
StepResult TouchPeer(const QpContext& qp, SendWqe& wqe) {
  return qp.link->PeerClosed() ? Fail(wqe, IBV_WC_RETRY_EXC_ERR)
                               : StepResult::kDone;
}

// Finds the mapping of a piece, `offset` into the work request.
StepResult Resolve(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                   const KeyRange& range, uint64_t offset, uint64_t bytes,
                   bool writable, std::byte** address) {
  switch (qp.link->Resolve(range.arena,
                           range.OffsetOf(detail.remote_address) + offset,
                           bytes, writable, address)) {
    case Link::Access::kOk:
      detail.waiting_since_ns = 0;
      return StepResult::kDone;
    case Link::Access::kInvalid:
      return Fail(wqe, IBV_WC_REM_OP_ERR);
    case Link::Access::kNotYet:
      break;
  }
  const int64_t now_ns = qp.clock->NowNanoseconds();
  if (detail.waiting_since_ns == 0) detail.waiting_since_ns = now_ns;
  if (now_ns - detail.waiting_since_ns > kAnnouncementLimitNs) {
    return Fail(wqe, IBV_WC_RETRY_EXC_ERR);
  }
  return StepResult::kLater;
}

StepResult Advance(const SendWqe& wqe, SendDetail& detail, uint64_t bytes,
                   uint64_t* budget_bytes) {
  detail.bytes_done += bytes;
  *budget_bytes -= bytes;
  return detail.bytes_done == wqe.byte_len ? StepResult::kDone
                                           : StepResult::kMore;
}

}  // namespace

StepResult ReadPiece(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                     const ibv_sge* sges, uint64_t offset, uint64_t bytes) {
  if (!CheckReadSges(qp, wqe, sges)) return Fail(wqe, IBV_WC_LOC_PROT_ERR);
  KeyRange range;
  const ibv_wc_status granted =
      FindRemote(qp, wqe, detail, IBV_ACCESS_REMOTE_READ, &range);
  if (granted != IBV_WC_SUCCESS) return Fail(wqe, granted);
  std::byte* from;
  const StepResult found =
      Resolve(qp, wqe, detail, range, offset, bytes, /*writable=*/false, &from);
  if (found != StepResult::kDone) return found;
  if (wqe.passes_caches()) {
    Scatter<memory::CopyPastCaches>(sges, offset, from, bytes);
  } else {
    Scatter(sges, offset, from, bytes);
  }
  // What was revoked or let go meanwhile may have held anything.
  if (!qp.link->peer_keys().StillValid(range)) {
    return Fail(wqe, IBV_WC_REM_ACCESS_ERR);
  }
  if (qp.link->PeerClosed()) return Fail(wqe, IBV_WC_RETRY_EXC_ERR);
  return StepResult::kDone;
}

StepResult ReadStep(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                    const ibv_sge* sges, uint64_t* budget_bytes) {
  if (wqe.byte_len == 0) return TouchPeer(qp, wqe);
  const uint64_t bytes =
      std::min(*budget_bytes, wqe.byte_len - detail.bytes_done);
  const StepResult result =
      ReadPiece(qp, wqe, detail, sges, detail.bytes_done, bytes);
  if (result != StepResult::kDone) return result;
  return Advance(wqe, detail, bytes, budget_bytes);
}

StepResult WriteStep(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                     const ibv_sge* sges, uint64_t* budget_bytes) {
  if (wqe.byte_len == 0) return TouchPeer(qp, wqe);
  if (!wqe.Has(IBV_SEND_INLINE) && !CheckLocalSges(qp, wqe, sges, 0)) {
    return Fail(wqe, IBV_WC_LOC_PROT_ERR);
  }
  const WritingScope writing(qp.link, detail.rkey);
  KeyRange range;
  const ibv_wc_status granted =
      FindRemote(qp, wqe, detail, IBV_ACCESS_REMOTE_WRITE, &range);
  if (granted != IBV_WC_SUCCESS) return Fail(wqe, granted);
  const uint64_t bytes =
      std::min(*budget_bytes, wqe.byte_len - detail.bytes_done);
  std::byte* to;
  const StepResult found =
      Resolve(qp, wqe, detail, range, detail.bytes_done, bytes,
              /*writable=*/true, &to);
  if (found != StepResult::kDone) return found;
  Gather(sges, detail.bytes_done, to, bytes);
  return Advance(wqe, detail, bytes, budget_bytes);
}

StepResult AtomicStep(const QpContext& qp, SendWqe& wqe, SendDetail& detail,
                      const ibv_sge* sges) {
  if (wqe.byte_len != sizeof(uint64_t)) return Fail(wqe, IBV_WC_LOC_LEN_ERR);
  if (!CheckLocalSges(qp, wqe, sges, IBV_ACCESS_LOCAL_WRITE)) {
    return Fail(wqe, IBV_WC_LOC_PROT_ERR);
  }
  if (detail.remote_address % sizeof(uint64_t) != 0) {
    return Fail(wqe, IBV_WC_REM_INV_REQ_ERR);
  }
  const WritingScope writing(qp.link, detail.rkey);
  KeyRange range;
  const ibv_wc_status granted =
      FindRemote(qp, wqe, detail, IBV_ACCESS_REMOTE_ATOMIC, &range);
  if (granted != IBV_WC_SUCCESS) return Fail(wqe, granted);
  std::byte* address;
  const StepResult found =
      Resolve(qp, wqe, detail, range, /*offset=*/0, sizeof(uint64_t),
              /*writable=*/true, &address);
  if (found != StepResult::kDone) return found;
  if (reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) != 0) {
    return Fail(wqe, IBV_WC_REM_OP_ERR);  // the peer's table lies
  }
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(address));
  uint64_t before = detail.compare_add;
  if (wqe.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    before = word.fetch_add(detail.compare_add);
  } else {
    word.compare_exchange_strong(before, detail.swap);
  }
  Scatter(sges, 0, reinterpret_cast<const std::byte*>(&before), sizeof(before));
  return StepResult::kDone;
}

}  // namespace rdma::soft
