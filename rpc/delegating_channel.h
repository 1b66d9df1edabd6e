// A channel that is another one, but for what a class derived from it does
// differently: gRPC C++'s, of its namespace experimental.
//
//   class Counted : public rpc::experimental::DelegatingChannel {
//    public:
//     using DelegatingChannel::DelegatingChannel;
//     rpc::ConnectivityState GetState(bool try_to_connect) override {
//       ++looks;
//       return delegate_channel()->GetState(try_to_connect);
//     }
//   };
//   auto stub = Greeter::NewStub(std::make_shared<Counted>(channel));
//
// Calls go to the other channel at once, and cost nothing more.
//
// Thread rule: as ChannelInterface.
#ifndef VERBENA_RPC_DELEGATING_CHANNEL_H_
#define VERBENA_RPC_DELEGATING_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/buffer.h"
#include "rpc/channel_interface.h"
#include "rpc/transport.h"

namespace rpc::experimental {

class DelegatingChannel : public ChannelInterface {
 public:
  // Keeps `delegate_channel` alive; not null.
  explicit DelegatingChannel(std::shared_ptr<ChannelInterface> delegate_channel)
      : delegate_channel_(std::move(delegate_channel)) {}

  std::shared_ptr<ChannelInterface> delegate_channel() {
    return delegate_channel_;
  }

  ConnectivityState GetState(bool try_to_connect) override {
    return delegate_channel_->GetState(try_to_connect);
  }
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return delegate_channel_->AllocateBuffer(bytes);
  }

  // For generated code.
  const internal::CallTarget& call_target() const override {
    return delegate_channel_->call_target();
  }
  uint32_t RegisterMethod(const char* path) final {
    return delegate_channel_->RegisterMethod(path);
  }

 private:
  bool WaitForStateChangeUntil(ConnectivityState last_observed,
                               absl::Time deadline) override {
    return delegate_channel_->WaitForStateChange(last_observed, deadline);
  }

  const std::shared_ptr<ChannelInterface> delegate_channel_;
};

}  // namespace rpc::experimental

#endif  // VERBENA_RPC_DELEGATING_CHANNEL_H_
