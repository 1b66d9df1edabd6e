// What goes over a connection's socket once its handshake is over.
//
// Thread rule: none; plain data.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_MESSAGES_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_MESSAGES_H_

#include <cstdint>

namespace rdma::soft {

enum class LinkMessageType : uint32_t {
  kRing = 1,      // look: for a CQ that is armed, or at room in the socket
  kAnnounce = 2,  // an arena, with its descriptor
  kWithdraw = 3,  // the arena is gone
};

struct LinkMessage {
  LinkMessageType type;
  uint32_t arena;  // 0 for kRing
};
static_assert(sizeof(LinkMessage) == 8);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SHM_LINK_MESSAGES_H_
