#include "rdma_transport/hardware/inline_limit.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

// More than any device takes; a WQE is at most a few KiB.
constexpr uint32_t kTooMuchInlineData = 4096;

using UniquePd = std::unique_ptr<ibv_pd, decltype(&ibv_dealloc_pd)>;
using UniqueCq = std::unique_ptr<ibv_cq, decltype(&ibv_destroy_cq)>;

// What the device makes of a wish for `max_inline_data`; nothing and errno
// where it refuses.
std::optional<uint32_t> TryInline(ibv_pd* pd, ibv_cq* cq,
                                  uint32_t max_inline_data) {
  ibv_qp_init_attr init = {};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = cq;
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = max_inline_data};
  ibv_qp* const qp = ibv_create_qp(pd, &init);
  if (qp == nullptr) return std::nullopt;
  ibv_destroy_qp(qp);
  return init.cap.max_inline_data;
}

}  // namespace

absl::StatusOr<uint32_t> FindInlineLimit(ibv_context* context) {
  const UniquePd pd(ibv_alloc_pd(context), &ibv_dealloc_pd);
  if (pd == nullptr) return VerbsError("ibv_alloc_pd", errno);
  const UniqueCq cq(ibv_create_cq(context, 1, nullptr, nullptr, 0),
                    &ibv_destroy_cq);
  if (cq == nullptr) return VerbsError("ibv_create_cq", errno);
  const std::optional<uint32_t> granted = TryInline(pd.get(), cq.get(), 0);
  if (!granted.has_value()) return VerbsError("ibv_create_qp", errno);
  // A QP with `taken` can be made, one with `refused` cannot.
  uint32_t taken = *granted;
  uint32_t refused = std::max(kTooMuchInlineData, taken + 1);
  while (refused - taken > 1) {
    const uint32_t wish = taken + (refused - taken) / 2;
    if (const auto more = TryInline(pd.get(), cq.get(), wish)) {
      taken = std::min(std::max(wish, *more), refused - 1);
    } else {
      refused = wish;
    }
  }
  return taken;
}

}  // namespace rdma
