// Makes the Nth call into libibverbs, librdmacm or the kernel fail, and counts
// the objects that are alive: below the hardware provider, where its own error
// branches are.
//
// The linker puts these functions in the calls' place (--wrap; see
// failing_calls.bzl, whose list and this file's must be the same). What the
// libraries call among themselves is not seen.
//
//   FaultPlan plan;
//   plan.FailCall(n, ENOMEM);
//   SetFaultPlan(&plan);
//   ...
//   SetFaultPlan(nullptr);
//
// Thread rule: set from one thread, while no other makes calls.
#ifndef VERBENA_TESTS_HARDWARE_FAILING_CALLS_H_
#define VERBENA_TESTS_HARDWARE_FAILING_CALLS_H_

#include <rdma/rdma_cma.h>

#include <functional>

#include "rdma_transport/provider/fault_plan.h"

namespace rdma {

// The plan of all calls from now on; null makes them as they are.
void SetFaultPlan(FaultPlan* plan);

// Sees, and may change, type and status of every event of rdma_cm before the
// provider does; an empty one ends it. CONNECT_REQUEST is to stay what it is.
void SetCmEventFilter(std::function<void(rdma_cm_event*)> filter);

}  // namespace rdma

#endif  // VERBENA_TESTS_HARDWARE_FAILING_CALLS_H_
