#include "rdma_transport/software/engine/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rdma::soft {
namespace {

int Membarrier(int command) {
  return static_cast<int>(syscall(SYS_membarrier, command, 0, 0));
}

}  // namespace

bool AsymmetricFence::Available() {
  static const bool available =
      Membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
      Membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
  return available;
}

void AsymmetricFence::Heavy() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (Available()) Membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

}  // namespace rdma::soft
