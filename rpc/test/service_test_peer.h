// Shows what a generated service says of its methods.
//
//   Bench::Service service;
//   const auto& messages =
//       rpc::testing::ServiceTestPeer::Messages(service, /*index=*/0);
//
// Thread rule: as the service.
#ifndef VERBENA_RPC_TEST_SERVICE_TEST_PEER_H_
#define VERBENA_RPC_TEST_SERVICE_TEST_PEER_H_

#include "rpc/internal/message_functions.h"
#include "rpc/service.h"

namespace rpc::testing {

class ServiceTestPeer {
 public:
  // Of the method with this index among the service's; in static storage.
  static const internal::MethodMessages& Messages(Service& service, int index) {
    return service.Method(index).messages();
  }
};

}  // namespace rpc::testing

#endif  // VERBENA_RPC_TEST_SERVICE_TEST_PEER_H_
