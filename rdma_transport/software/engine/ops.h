// The verbs ops of the engine: the functions that libibverbs' inline calls jump
// to through `ibv_context::ops`.
//
// Thread rule: the locking table from any thread, the other as its queues.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_OPS_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_OPS_H_

#include <infiniband/verbs.h>

namespace rdma::soft {

enum class QueueLocking { kNone, kDevice };

// The table for an EngineDevice's context.
ibv_context_ops MakeOps(QueueLocking locking);

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_ENGINE_OPS_H_
