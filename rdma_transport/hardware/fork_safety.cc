#include "rdma_transport/hardware/fork_safety.h"

#include <infiniband/verbs.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

bool InitializeFork() {
  if (ibv_is_fork_initialized() != IBV_FORK_DISABLED) return true;
  const int error = ibv_fork_init();
  if (error == 0) return true;
  rpc::Log(rpc::LogLevel::kWarning,
           absl::StrCat("ibv_fork_init: ", strerror(error),
                        ": something registered memory before. If this "
                        "process forks, its connections may read stale "
                        "memory: set RDMAV_FORK_SAFE=1, or do not fork"));
  return false;
}

}  // namespace

void MakeForkSafe() {
  // Once a process: what was registered before cannot be made safe later.
  [[maybe_unused]] static const bool safe = InitializeFork();
}

}  // namespace rdma
