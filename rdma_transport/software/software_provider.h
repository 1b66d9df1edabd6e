// The software RDMA device, "soft0": verbs between the processes of one host,
// on shared memory, with no privilege and no kernel module.
//
//   std::unique_ptr<rdma::Provider> provider = rdma::MakeSoftwareProvider();
//   absl::StatusOr<std::unique_ptr<rdma::Device>> device =
//       provider->Open("soft0", {.single_threaded_queues = true});
//
// What to know of it beside provider.h:
// - There are no threads inside. Work advances inside the owner's verbs calls:
//   ibv_poll_cq above all, GetCqEvent, and the posts. A peer's SEND is
//   therefore acknowledged when its receiver polls, or, where the receiver's CQ
//   is armed, when its completion channel's owner wakes and calls GetCqEvent.
// - READ, WRITE and atomics are carried out by the requester in the peer's
//   memory, in pieces, while it polls: the peer need not run for them. It may
//   help with READs into memory of MemoryUse::kJointReads; what it has begun to
//   copy is waited for.
// - Memory comes from Device::AllocateMemory; RegMr refuses other memory with
//   EOPNOTSUPP. A peer maps an arena (one AllocateMemory) as a whole: peers are
//   processes of the same user, or, with `allow_other_users`, trusted.
// - Nothing outlives a process: there are no named objects, so that SIGKILL at
//   any instruction leaves nothing behind, and the peer sees a disconnect.
// - After fork(2) the child must not use the device, only exec or _exit; while
//   it lives without exec, a peer sees the parent's death late.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_SOFTWARE_PROVIDER_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_SOFTWARE_PROVIDER_H_

#include <memory>

#include "rdma_transport/provider/provider.h"

namespace rdma {

// The provider "software" with its one device, "soft0".
std::unique_ptr<Provider> MakeSoftwareProvider();

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_SOFTWARE_PROVIDER_H_
