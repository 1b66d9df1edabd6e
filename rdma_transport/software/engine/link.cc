#include "rdma_transport/software/engine/link.h"

#include <atomic>

namespace rdma::soft {

Link::Link()
    : serial_([] {
        static std::atomic<uint64_t> last{0};
        return last.fetch_add(1, std::memory_order_relaxed) + 1;
      }()) {}

bool Link::SendSmall(uint32_t immediate, const std::byte* data,
                     uint32_t bytes) {
  if (!tx_.HasRoomFor(LinesFor(bytes)) ||
      control_pending_.load(std::memory_order_relaxed)) [[unlikely]] {
    return false;
  }
  tx_.WriteRun(data, bytes);
  tx_.Publish({.kind = PacketKind::kSendWithImmediate,
               .payload_bytes = static_cast<uint16_t>(bytes),
               .immediate = immediate});
  Wake(/*solicited=*/false);
  tx_.FetchBack(bytes);
  return true;
}

}  // namespace rdma::soft
