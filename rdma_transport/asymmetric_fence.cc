#include "rdma_transport/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rdma {
namespace {

bool Membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

bool AsymmetricFence::Available(Reach reach) {
  if (reach == Reach::kProcess) {
    static const bool available =
        Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
        Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    return available;
  }
  static const bool available =
      Membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
      Membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  return available;
}

void AsymmetricFence::Heavy(Reach reach) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!Available(reach)) return;
  const int command = reach == Reach::kProcess
                          ? MEMBARRIER_CMD_PRIVATE_EXPEDITED
                          : MEMBARRIER_CMD_GLOBAL_EXPEDITED;
  while (!Membarrier(command)) {
    if (errno == ENOMEM || errno == EAGAIN) continue;
    // The common side counts on it and goes on: a lock would be nobody's.
    std::fprintf(stderr, "membarrier, which worked before, fails: %s\n",
                 std::strerror(errno));
    std::abort();
  }
}

}  // namespace rdma
