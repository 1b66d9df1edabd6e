// A client's way to one server: make one, and make stubs of it.
//
//   std::shared_ptr<rpc::Channel> channel = rpc::CreateChannel(
//       "rdma://localhost:50051", rpc::InsecureChannelCredentials());
//   auto stub = Greeter::NewStub(channel);
//
// A channel connects with its first call, reconnects when it must, and shares
// connections with the process' other channels to the same address where the
// transport does. It is cheap to make and meant to be kept.
//
// The last reference may be dropped anywhere, also in a callback of the channel
// itself. Calls of the callback API keep their channel alive.
//
// Thread rule: every function may be called from any thread.
#ifndef VERBENA_RPC_CHANNEL_H_
#define VERBENA_RPC_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rpc/channel_arguments.h"
#include "rpc/channel_interface.h"
#include "rpc/client_interceptor.h"
#include "rpc/credentials.h"
#include "rpc/internal/channel_interceptors.h"

namespace rpc {

class Channel;
namespace testing {
class ChannelTestPeer;
}  // namespace testing

namespace experimental {

// CreateCustomChannel with factories of interceptors, which see every call of
// the channel; see client_interceptor.h. Calls of a channel without a transport
// (a wrong address) reach interceptors, too, and may be hijacked.
std::shared_ptr<Channel> CreateCustomChannelWithInterceptors(
    const std::string& address,
    const std::shared_ptr<ChannelCredentials>& credentials,
    const ChannelArguments& arguments,
    std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>>
        interceptor_factories);

// Has the channel's failed connections try again now, with pauses as short as
// at first: for a program that knows that the network is back.
void ChannelResetConnectionBackoff(Channel* channel);

}  // namespace experimental

class Channel final : public ChannelInterface {
 public:
  ConnectivityState GetState(bool try_to_connect) override;
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override;

  // Of the arguments, and of the service config that is one of them; "{}":
  // there is none.
  std::string GetLoadBalancingPolicyName() const;
  std::string GetServiceConfigJSON() const {
    return routing_.service_config.empty() ? "{}" : routing_.service_config;
  }

  // The device in use ("soft0", "mlx5_0"); empty before the first connection.
  std::string device() const;

  // For generated code.
  const internal::CallTarget& call_target() const override { return target_; }
  uint32_t RegisterMethod(const char* path) override;

 private:
  friend std::shared_ptr<Channel>
  experimental::CreateCustomChannelWithInterceptors(
      const std::string& address,
      const std::shared_ptr<ChannelCredentials>& credentials,
      const ChannelArguments& arguments,
      internal::ClientInterceptorFactories interceptor_factories);
  friend void experimental::ChannelResetConnectionBackoff(Channel* channel);
  friend class testing::ChannelTestPeer;

  Channel(std::unique_ptr<ClientTransport> transport,
          const EndpointOptions& options, const std::string& address);
  explicit Channel(Status error);
  static void Destroy(Channel* channel);
  // Before the first call.
  void SetInterceptors(internal::ClientInterceptorFactories factories);

  bool WaitForStateChangeUntil(ConnectivityState last_observed,
                               absl::Time deadline) override;

  const std::unique_ptr<ClientTransport> transport_;
  const RoutingOptions routing_;
  const std::string origin_;  // see internal::EncodeOrigin
  internal::CallTarget target_;
  internal::ClientInterceptorFactories interceptor_factories_;
  internal::ChannelInterceptors interceptors_;

  // By stubs, for ChannelTestPeer.
  absl::Mutex registrations_mutex_;
  int registration_attempts_ ABSL_GUARDED_BY(registrations_mutex_) = 0;
  std::set<uint32_t> registered_methods_ ABSL_GUARDED_BY(registrations_mutex_);
};

// `address` is rdma://HOST:PORT or HOST:PORT, or several of them with commas in
// between: rdma://HOST:PORT,HOST:PORT. Never null and never blocks:
// where the address or an argument is wrong, or no transport is linked, every
// call on the channel ends with a status that says so, and its state is
// TRANSIENT_FAILURE for good.
std::shared_ptr<Channel> CreateChannel(
    const std::string& address,
    const std::shared_ptr<ChannelCredentials>& credentials);
std::shared_ptr<Channel> CreateCustomChannel(
    const std::string& address,
    const std::shared_ptr<ChannelCredentials>& credentials,
    const ChannelArguments& arguments);

}  // namespace rpc

#endif  // VERBENA_RPC_CHANNEL_H_
