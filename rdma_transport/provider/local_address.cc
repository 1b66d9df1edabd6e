#include "rdma_transport/provider/local_address.h"

#include <sys/socket.h>

#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

bool IsLocalAddress(SocketAddress address) {
  address.set_port(0);
  const UniqueFd fd(socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return fd && bind(fd.get(), address.get(), address.length()) == 0;
}

}  // namespace rdma
