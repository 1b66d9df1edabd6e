// What the two halves of a QP, requester and responder, share.
//
// Thread rule: as the QP.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QP_CONTEXT_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QP_CONTEXT_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "rdma_transport/software/clock.h"
#include "rdma_transport/software/engine/completion_queue.h"
#include "rdma_transport/software/engine/link.h"
#include "rdma_transport/software/engine/memory_registry.h"
#include "rdma_transport/software/engine/poll_target.h"

namespace rdma::soft {

// Largest message, as the specification has it.
inline constexpr uint64_t kMaxMessageBytes = uint64_t{1} << 31;

struct QpContext {
  MemoryRegistry* memory = nullptr;
  Clock* clock = nullptr;
  ProtectionDomain* pd = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  PollTarget* target = nullptr;  // the QP
  uint32_t qp_num = 0;
  Link* link = nullptr;  // null while not connected
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_QP_CONTEXT_H_
