#include "tools/rdma_info/capabilities.h"

#include <infiniband/verbs.h>

#include <cstdint>
#include <type_traits>

#include "rdma_transport/device_use.h"

namespace rdma_info {
namespace {

// Drivers write "very many" as a negative int, too.
uint64_t Count(int value) { return static_cast<uint32_t>(value); }

bool Has(const ibv_device_attr& attributes, unsigned int flag) {
  return (attributes.device_cap_flags & flag) != 0;
}

}  // namespace

std::vector<Capability> CapabilitiesOf(const Device& device) {
  const ibv_device_attr& has = device.attributes;
  const rdma::DeviceUse use = rdma::UseOf(has, device.useful_inline_data);
  return {
      {"max_qp", Count(has.max_qp), {}, false, "QPs: one a connection"},
      {"max_qp_wr", Count(has.max_qp_wr), use.send_queue_depth, false,
       "a connection's send queue"},
      {"max_sge", Count(has.max_sge), use.send_sges, false,
       "pieces that one SEND gathers"},
      {"max_inline_data", device.max_inline_data, use.inline_bytes, false,
       "bytes sent without a DMA read"},
      {"max_qp_init_rd_atom", Count(has.max_qp_init_rd_atom), use.reads_issued,
       false, "a connection's READs at once"},
      {"max_qp_rd_atom", Count(has.max_qp_rd_atom), use.reads_served, false,
       "its peer's READs at once"},
      {"max_cq", Count(has.max_cq), {}, false, "CQs: one a poller"},
      {"max_cqe", Count(has.max_cqe), Count(use.cq_depth), false,
       "a poller's CQ, to begin with"},
      {"max_srq", Count(has.max_srq), {}, false, "SRQs: one a poller"},
      {"max_srq_wr", Count(has.max_srq_wr), use.srq_depth, false,
       "a poller's receives"},
      {"max_mr", Count(has.max_mr), {}, false, "MRs: one for many messages"},
      {"max_mr_size", has.max_mr_size, {}, false, "bytes of the largest MR"},
      {"max_mw", Count(has.max_mw), {}, false, "MWs: some a large message"},
      {"mem_window_type_2", rdma::HasType2Windows(has), use.memory_windows,
       true, "grants one message at a time"},
      {"mem_window_type_2b",
       Has(has, IBV_DEVICE_MEM_WINDOW_TYPE_2B),
       {},
       true,
       "windows that belong to a QP"},
      {"atomics", has.atomic_cap != IBV_ATOMIC_NONE, false, true,
       "compare-and-swap, fetch-and-add"},
      {"on_demand_paging", device.has_odp, false, true,
       "memory is pinned instead"},
  };
}

}  // namespace rdma_info
