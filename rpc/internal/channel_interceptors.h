// The factories of a channel's interceptors, and what is below them.
//
// Thread rule: immutable.
#ifndef VERBENA_RPC_INTERNAL_CHANNEL_INTERCEPTORS_H_
#define VERBENA_RPC_INTERNAL_CHANNEL_INTERCEPTORS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "rpc/channel_interface.h"
#include "rpc/client_interceptor.h"
#include "rpc/transport.h"

namespace rpc::internal {

using ClientInterceptorFactories = std::vector<
    std::unique_ptr<experimental::ClientInterceptorFactoryInterface>>;

struct ChannelInterceptors {
  // Owned by `channel`, as the transport.
  const ClientInterceptorFactories* factories = nullptr;
  // The first that counts; the process's own comes after the last of them.
  size_t first = 0;
  ChannelInterface* channel = nullptr;
  ClientTransport* transport = nullptr;  // null: calls fail, unless hijacked
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CHANNEL_INTERCEPTORS_H_
