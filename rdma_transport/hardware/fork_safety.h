// Fork and registered memory. ibv_fork_init(3), ibv_is_fork_initialized(3).
//
// fork(2) marks all pages copy-on-write. On kernels before 5.12 the parent may
// then get the copy and lose the page that the device knows. Newer kernels copy
// pinned pages for the child, and libibverbs tells by IBV_FORK_UNNEEDED. On
// older ones ibv_fork_init keeps registered pages out of children, which costs
// a system call for each registration.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_FORK_SAFETY_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_FORK_SAFETY_H_

namespace rdma {

// Makes fork(2) safe for memory that is registered from now on, where that
// needs doing. Never fatal: where another library has registered memory
// already, ibv_fork_init fails, and a warning in the log says what that means.
// May be called again and from any thread.
void MakeForkSafe();

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_FORK_SAFETY_H_
