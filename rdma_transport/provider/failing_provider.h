// A provider around another one, whose Nth control call fails: "fail the Nth
// call for N = 0, 1, 2, ... until a run is clean, and look for leaks each
// time". See fault_plan.h for how.
//
// What counts as a control call: Open, DeviceFor, AllocateMemory, AllocPd,
// RegMr, CreateCompChannel, CreateCq, CreateSrq, ModifySrq, QuerySrq, CreateQp,
// ModifyQp, QueryQp, CreateConnectionManager, and a manager's Listen, Connect,
// Accept, Reject, Release and Adopt. A call that fails by plan is not made.
// What destroys never fails by plan. Plain verbs (ibv_post_send, ibv_alloc_mw,
// ...) go to the device directly and are not seen.
//
// What is counted as alive: devices, memory, PDs, MRs, completion channels,
// CQs, SRQs, QPs, connection managers, and ids that have a manager.
//
// Threads: as the provider inside.
#ifndef VERBENA_RDMA_TRANSPORT_PROVIDER_FAILING_PROVIDER_H_
#define VERBENA_RDMA_TRANSPORT_PROVIDER_FAILING_PROVIDER_H_

#include <memory>

#include "rdma_transport/provider/fault_plan.h"
#include "rdma_transport/provider/provider.h"

namespace rdma {

// REQUIRES: `plan` outlives the provider and all that is made of it.
std::unique_ptr<Provider> MakeFailingProvider(std::unique_ptr<Provider> inner,
                                              FaultPlan* plan);

// The same for a device that is open already; it counts as one.
std::unique_ptr<Device> MakeFailingDevice(std::unique_ptr<Device> inner,
                                          FaultPlan* plan);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_PROVIDER_FAILING_PROVIDER_H_
