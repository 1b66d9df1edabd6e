// What the transport takes of a device: its own wishes, within what the device
// has. One place for both the code that makes queues and the tools that say
// what queues there will be.
//
//   const DeviceUse use = UseOf(device->attributes(),
//                               device->useful_inline_data());
//   depths.max_send_wr = use.send_queue_depth;
//
// Pure; thread-safe. ibv_query_device(3) has the limits' meaning.
#ifndef VERBENA_RDMA_TRANSPORT_DEVICE_USE_H_
#define VERBENA_RDMA_TRANSPORT_DEVICE_USE_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>

#include "rdma_transport/provider/provider.h"
#include "rdma_transport/verbs/protection_domain.h"

namespace rdma {

// Of a connection.
inline constexpr uint32_t kWishedSendQueueDepth = 256;
inline constexpr uint32_t kWishedSendSges = 8;
// Longer messages are written to registered memory at once. A `bytes` field of
// 1 KiB, with what protobuf and other fields add to it, is not.
inline constexpr uint32_t kCopyMessageBytes = 1088;
// Room for a frame of such a message.
inline constexpr uint32_t kWishedInlineBytes = kCopyMessageBytes + 64;
inline constexpr int kWishedReads = 16;  // under way at once, each way
// Of a poller. The CQ is made larger when connections need it.
inline constexpr uint32_t kWishedSrqDepth = 16384;
inline constexpr int kWishedCqDepth = 32768;

// Whether offers are granted by type 2 windows. Not on soft-RoCE (Linux 6.1):
// when it sends again what was lost, it carries out the bindings and
// invalidations that came after that once more, too, which fails, and with it
// the QP: each lost packet would cost a connection.
inline bool GrantsByWindows(const ibv_device_attr& limits) {
  return HasType2Windows(limits) && !IsSoftRoce(limits);
}

struct DeviceUse {
  uint32_t send_queue_depth;  // work requests
  uint32_t send_sges;
  uint32_t inline_bytes;  // the longest SEND that is copied into its WQE
  uint8_t reads_issued;   // RDMA READs of a connection at once; at least 1
  uint8_t reads_served;   // the peer's; at least 1
  uint32_t srq_depth;
  int cq_depth;         // to begin with
  bool memory_windows;  // offers are granted by type 2 windows
};

// READs at once, in either direction, where the device has `limit`.
inline uint8_t ReadDepth(int limit) {
  return static_cast<uint8_t>(std::clamp(limit, 1, kWishedReads));
}

// `useful_inline_data` is Device::useful_inline_data.
inline DeviceUse UseOf(const ibv_device_attr& limits,
                       uint32_t useful_inline_data) {
  return {
      .send_queue_depth = std::min(kWishedSendQueueDepth,
                                   static_cast<uint32_t>(limits.max_qp_wr)),
      .send_sges =
          std::min(kWishedSendSges, static_cast<uint32_t>(limits.max_sge)),
      .inline_bytes = std::min(kWishedInlineBytes, useful_inline_data),
      .reads_issued = ReadDepth(limits.max_qp_init_rd_atom),
      .reads_served = ReadDepth(limits.max_qp_rd_atom),
      .srq_depth =
          std::min(kWishedSrqDepth, static_cast<uint32_t>(limits.max_srq_wr)),
      .cq_depth = std::min(kWishedCqDepth, limits.max_cqe),
      .memory_windows = GrantsByWindows(limits),
  };
}

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_DEVICE_USE_H_
