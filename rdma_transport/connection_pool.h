// The process's endpoints: channels to the same address with the same options
// share one, and with it its connection.
//
// Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_CONNECTION_POOL_H_
#define VERBENA_RDMA_TRANSPORT_CONNECTION_POOL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "rdma_transport/address.h"
#include "rdma_transport/endpoint.h"
#include "rpc/transport.h"

namespace rdma {

class ConnectionPool {
 public:
  // The endpoint is shut down when the last reference goes.
  static absl::StatusOr<std::shared_ptr<Endpoint>> Get(
      const HostPort& address, const rpc::TransportOptions& options);
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CONNECTION_POOL_H_
