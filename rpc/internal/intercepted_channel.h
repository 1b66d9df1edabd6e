// A channel for an interceptor's own calls: they see the interceptors that come
// after it only. What GetInterceptedChannel gives.
//
// Thread rule: every function may be called from any thread.
#ifndef VERBENA_RPC_INTERNAL_INTERCEPTED_CHANNEL_H_
#define VERBENA_RPC_INTERNAL_INTERCEPTED_CHANNEL_H_

#include <cstddef>
#include <memory>

#include "rpc/channel_interface.h"
#include "rpc/delegating_channel.h"
#include "rpc/internal/channel_interceptors.h"

namespace rpc::internal {

class InterceptedChannel final : public experimental::DelegatingChannel {
 public:
  // Keeps `channel` alive. `first`: the first factory that counts.
  InterceptedChannel(std::shared_ptr<ChannelInterface> channel, size_t first);

  const CallTarget& call_target() const override { return target_; }

 private:
  ChannelInterceptors interceptors_;
  CallTarget target_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_INTERCEPTED_CHANNEL_H_
