// A channel to a transport that a test has, and that outlives it; and what such
// transports have in common.
//
//   class OneCallTransport final : public BareTransport { ... };
//   auto channel = std::make_shared<TransportChannel>(&transport);
//
// Thread rule: as Channel, and as ClientTransport.
#ifndef VERBENA_TESTS_RPC_TRANSPORT_CHANNEL_H_
#define VERBENA_TESTS_RPC_TRANSPORT_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/rpc.h"

namespace rpc::testing {

// A transport that is always ready. Calls are left to the test.
class BareTransport : public ClientTransport {
 public:
  static constexpr uint64_t kWindow = 65'536;

  const Limits& limits() const override { return limits_; }
  uint32_t RegisterMethod(std::string_view) override { return 0; }
  void WakeWaiters() override {}
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes) override {
    return Buffer::FromHeap(bytes);
  }
  ConnectivityState GetState(bool) override {
    return ConnectivityState::kReady;
  }
  bool WaitForStateChange(ConnectivityState, absl::Time) override {
    return false;
  }
  std::string device() const override { return "none"; }

 private:
  const Limits limits_ = {.max_header_bytes = 1'000,
                          .copy_message_bytes = 1'000,
                          .max_message_bytes = UINT64_MAX,
                          .max_attachment_bytes = UINT64_MAX,
                          .stream_window_bytes = kWindow};
};

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
