#include "rdma_transport/software/engine/send_queue.h"

#include <algorithm>
#include <bit>

#include "rdma_transport/software/engine/sge_copy.h"

namespace rdma::soft {

SendQueue::SendQueue(const ibv_qp_cap& cap)
    : depth_(std::max(cap.max_send_wr, 1u)),
      mask_(std::bit_ceil(depth_) - 1),
      // The SGEs, or one SGE and the inline data that it points to.
      payload_units_(std::max<size_t>(
          cap.max_send_sge,
          1 + (cap.max_inline_data + sizeof(Unit) - 1) / sizeof(Unit))),
      wqes_(new SendWqe[size_t{mask_} + 1]),
      details_(new SendDetail[size_t{mask_} + 1]),
      payloads_(new Unit[(size_t{mask_} + 1) * payload_units_]) {}

void SendQueue::SaveDetail(uint32_t index, const ibv_send_wr& wr) {
  SendDetail& detail = DetailAt(index);
  detail = {};
  switch (wr.opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      detail.remote_address = wr.wr.atomic.remote_addr;
      detail.rkey = wr.wr.atomic.rkey;
      detail.compare_add = wr.wr.atomic.compare_add;
      detail.swap = wr.wr.atomic.swap;
      break;
    case IBV_WR_BIND_MW:
      detail.window = wr.bind_mw.mw;
      detail.rkey = wr.bind_mw.rkey;
      detail.bind = wr.bind_mw.bind_info;
      break;
    default:
      detail.remote_address = wr.wr.rdma.remote_addr;
      detail.rkey = wr.wr.rdma.rkey;
      break;
  }

  SendWqe& wqe = At(index);
  Unit* const payload = PayloadAt(index);
  auto* const sges = reinterpret_cast<ibv_sge*>(payload);
  if (!wqe.Has(IBV_SEND_INLINE)) {
    for (uint32_t i = 0; i < wqe.sge_count; ++i) sges[i] = wr.sg_list[i];
    return;
  }
  auto* const data = reinterpret_cast<std::byte*>(payload + 1);
  Gather(wr.sg_list, 0, data, wqe.byte_len);
  sges[0] = {reinterpret_cast<uint64_t>(data), wqe.byte_len, 0};
  wqe.sge_count = 1;
}

}  // namespace rdma::soft
