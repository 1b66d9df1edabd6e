// Memory to register: whole pages, huge ones where there are, all present.
//
// Few and large pages keep the NIC's translation cache small, and pages that
// are there already spare ibv_reg_mr the faults.
//
//   void* memory = AllocateArena(size_t{64} << 20);
//   FreeArena(memory, size_t{64} << 20);
//
// Thread-safe, as mmap(2) is.
#ifndef VERBENA_RDMA_TRANSPORT_HARDWARE_ARENA_MEMORY_H_
#define VERBENA_RDMA_TRANSPORT_HARDWARE_ARENA_MEMORY_H_

#include <cstddef>

namespace rdma {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Page-aligned and zeroed. A multiple of kHugePageBytes is made of reserved
// huge pages (vm.nr_hugepages) as far as they last, then of transparent ones as
// the system's setting allows. Null and errno (ENOMEM, EINVAL) where there is
// none.
void* AllocateArena(size_t bytes);
// REQUIRES: `memory` is of AllocateArena(bytes), and not registered any more.
void FreeArena(void* memory, size_t bytes);

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_HARDWARE_ARENA_MEMORY_H_
