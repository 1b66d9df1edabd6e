// Whether and when one call is repeated, by its method's retry policy: gRPC's
// proposal A6. Knows what attempts end with, and nothing of how they are made.
//
//   CallRetries retries(&policy, &throttle);
//   std::optional<absl::Duration> pause =
//       retries.AfterAttempt(code, committed, pushback, draw);
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_ROUTING_CALL_RETRIES_H_
#define VERBENA_RPC_ROUTING_CALL_RETRIES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "rpc/routing/retry_throttle.h"
#include "rpc/routing/service_config.h"

namespace rpc::routing {

class CallRetries {
 public:
  // What AddAttempts adds, at most.
  static constexpr uint32_t kHeaderBytes = 64;

  // A number between two, all as likely.
  using Draw = absl::FunctionRef<double(double low, double high)>;

  // Either may be null: nothing is repeated, or not throttled. Both outlive it.
  CallRetries(const RetryPolicy* policy, RetryThrottle* throttle)
      : policy_(policy), throttle_(throttle) {}

  // Adds to an attempt's header block how many there were before:
  // grpc-previous-rpc-attempts.
  void AddAttempts(std::string& header) const;
  // Those that could be repeated.
  int attempts() const { return attempts_; }

  // An attempt ended with `code`, as gRPC numbers it. `committed`: it is too
  // late to repeat it, and only counts. `pushback`: what the server says
  // (PushbackIn). The result is the time until the next attempt; none: there is
  // none.
  std::optional<absl::Duration> AfterAttempt(
      uint32_t code, bool committed, std::optional<absl::Duration> pushback,
      Draw draw);

  // A server's grpc-retry-pushback-ms in the header block of its last frame:
  // when it wants the call again. Negative, also where it is no number: never.
  static std::optional<absl::Duration> PushbackIn(
      absl::Span<const std::byte> header);

 private:
  absl::Duration NextBackoff(Draw draw);

  const RetryPolicy* policy_;
  RetryThrottle* throttle_;
  int attempts_ = 0;
  // What the last pause was before its jitter; zero: the next is the first.
  absl::Duration backoff_ = absl::ZeroDuration();
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_CALL_RETRIES_H_
