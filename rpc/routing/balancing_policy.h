// Which of a channel's addresses its calls go to, as gRPC's policies of the
// same names have it. Pure: told what state each address is in, a policy says
// which to connect to, and what state the channel is in.
//
//   std::unique_ptr<BalancingPolicy> policy = MakePolicy("round_robin", 0);
//   BalancingPolicy::Decision decision = policy->Look(addresses, wanted);
//   for (size_t index : decision.connect) ...
//
// pick_first: the addresses are tried in order until one connects; all calls go
// there. When it is lost the channel is idle, and the next call begins again
// with the first, however that one fared before. While none connects, each is
// tried again after its backoff.
//
// round_robin: all are connected, always; calls go to those that are, in turns.
// One that failed counts as failing until it is connected again.
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_ROUTING_BALANCING_POLICY_H_
#define VERBENA_RPC_ROUTING_BALANCING_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "rpc/transport.h"

namespace rpc::routing {

class BalancingPolicy {
 public:
  struct Address {
    ConnectivityState state = ConnectivityState::kIdle;
    bool failed = false;  // connecting to it, since the last look
  };
  struct Decision {
    ConnectivityState state = ConnectivityState::kIdle;  // the channel's
    std::vector<size_t> connect;  // addresses that are to, if they are idle
    // How they fared does not count any more; see
    // ClientTransport::ResetBackoff.
    std::vector<size_t> forget;
  };

  virtual ~BalancingPolicy() = default;

  // There are others from now on. `old_places`: of each, where it was before;
  // none: it was not there.
  virtual void OnNewAddresses(
      absl::Span<const std::optional<size_t>> old_places) = 0;

  // `wanted`: a call waits, or the user asks to connect. `addresses` are as
  // many as the last time, or as OnNewAddresses said.
  virtual Decision Look(absl::Span<const Address> addresses, bool wanted) = 0;

  // Where the next call goes, after a decision of kReady; none where what it
  // was made of is not ready any more.
  virtual std::optional<size_t> Pick(
      absl::FunctionRef<bool(size_t index)> is_ready) = 0;

  // What begins the text of a call's status in kTransientFailure.
  virtual std::string_view failure_text() const = 0;
};

// Null where there is no policy of this name. `start`: which address
// round_robin begins with, modulo their number.
std::unique_ptr<BalancingPolicy> MakePolicy(std::string_view name,
                                            uint32_t start);

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_BALANCING_POLICY_H_
