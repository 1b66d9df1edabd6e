// What of the system matters to RDMA besides the devices: limits of this
// process, the kernel's interfaces, fork, cgroups.
#ifndef VERBENA_TOOLS_RDMA_INFO_SYSTEM_H_
#define VERBENA_TOOLS_RDMA_INFO_SYSTEM_H_

#include <string>
#include <vector>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

// Of this process. REQUIRES: what makes fork safe is done
// (rdma::MakeHardwareProvider does it), so that its result can be seen.
System CollectSystem(const Roots& roots);

// Whether registered memory of this process is exempt from RLIMIT_MEMLOCK. The
// kernel's drivers ask for CAP_IPC_LOCK in the first user namespace: root of a
// rootless container has it in its own only. user_namespaces(7).
bool IgnoresMemlock(const Roots& roots);

// The limits of the rdma controller on this process, the strictest of all
// cgroups on the way up; of either version. cgroups(7).
std::vector<CgroupLimit> CollectCgroupLimits(const Roots& roots);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_SYSTEM_H_
