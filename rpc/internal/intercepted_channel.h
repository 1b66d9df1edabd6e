// A channel for an interceptor's own calls: they see the interceptors that come
// after it only. What GetInterceptedChannel gives.
//
// Thread rule: every function may be called from any thread.
#ifndef VERBENA_RPC_INTERNAL_INTERCEPTED_CHANNEL_H_
#define VERBENA_RPC_INTERNAL_INTERCEPTED_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/internal/channel_interceptors.h"
#include "rpc/transport.h"

namespace rpc::internal {

class InterceptedChannel final : public ChannelInterface {
 public:
  // Keeps `channel` alive. `first`: the first factory that counts.
  InterceptedChannel(std::shared_ptr<ChannelInterface> channel, size_t first);

  ConnectivityState GetState(bool try_to_connect) override {
    return channel_->GetState(try_to_connect);
  }
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return channel_->AllocateBuffer(bytes);
  }
  const CallTarget& call_target() const override { return target_; }
  uint32_t RegisterMethod(const char* path) override {
    return channel_->RegisterMethod(path);
  }

 private:
  bool WaitForStateChangeUntil(ConnectivityState last_observed,
                               absl::Time deadline) override {
    return channel_->WaitForStateChange(last_observed, deadline);
  }

  const std::shared_ptr<ChannelInterface> channel_;
  ChannelInterceptors interceptors_;
  CallTarget target_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_INTERCEPTED_CHANNEL_H_
