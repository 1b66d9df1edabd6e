#include "rpc/internal/intercepted_channel.h"

#include <utility>

namespace rpc::internal {

InterceptedChannel::InterceptedChannel(
    std::shared_ptr<ChannelInterface> channel, size_t first)
    : DelegatingChannel(std::move(channel)),
      interceptors_(*DelegatingChannel::call_target().interceptors),
      target_(DelegatingChannel::call_target()) {
  interceptors_.first = first;
  target_.interceptors = &interceptors_;
}

}  // namespace rpc::internal
