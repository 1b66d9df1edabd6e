// The network interfaces of this machine, by getifaddrs(3) and /sys/class/net.
#ifndef VERBENA_TOOLS_RDMA_INFO_NETDEVS_H_
#define VERBENA_TOOLS_RDMA_INFO_NETDEVS_H_

#include <vector>

#include "tools/rdma_info/machine.h"

namespace rdma_info {

// Those of the network namespace of this process; empty where it may not ask.
std::vector<Netdev> CollectNetdevs(const Roots& roots);

}  // namespace rdma_info

#endif  // VERBENA_TOOLS_RDMA_INFO_NETDEVS_H_
