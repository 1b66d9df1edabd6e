// A channel to a transport that a test has, and that outlives it.
//
//   auto channel = std::make_shared<TransportChannel>(&transport);
//
// Thread rule: as Channel.
#ifndef VERBENA_TESTS_RPC_TRANSPORT_CHANNEL_H_
#define VERBENA_TESTS_RPC_TRANSPORT_CHANNEL_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/rpc.h"

namespace rpc::testing {

class TransportChannel final : public ChannelInterface {
 public:
  explicit TransportChannel(ClientTransport* transport) {
    target_.transport = transport;
    target_.encode_limits =
        internal::EncodeLimits(transport->limits(), UINT64_MAX);
    target_.max_metadata_bytes = 1'000;
  }

  ConnectivityState GetState(bool try_to_connect) override {
    return target_.transport->GetState(try_to_connect);
  }
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return target_.transport->AllocateBuffer(bytes);
  }
  const internal::CallTarget& call_target() const override { return target_; }
  uint32_t RegisterMethod(const char* path) override {
    return target_.transport->RegisterMethod(path);
  }

 private:
  bool WaitForStateChangeUntil(ConnectivityState, absl::Time) override {
    return false;
  }

  internal::CallTarget target_;
};

}  // namespace rpc::testing

#endif  // VERBENA_TESTS_RPC_TRANSPORT_CHANNEL_H_
