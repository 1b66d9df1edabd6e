#include "rdma_transport/connection_lifetime.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace rdma {
namespace {

// Of gRPC's documentation of grpc.max_connection_age_ms.
constexpr double kAgeJitter = 0.1;
// For a client to close a connection whose calls have been ended.
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);

}  // namespace

bool ConnectionLifetime::Limits::any() const {
  return std::min(age, idle) != absl::InfiniteDuration();
}

ConnectionLifetime::Limits ConnectionLifetime::LimitsOf(
    const rpc::TransportOptions& options, absl::BitGen& random) {
  const double jitter = absl::Uniform(random, 1 - kAgeJitter, 1 + kAgeJitter);
  return {options.max_connection_age * jitter, options.max_connection_age_grace,
          options.max_connection_idle};
}

ConnectionLifetime::ConnectionLifetime(Poller* poller, Connection* connection,
                                       const Limits& limits)
    : poller_(poller), connection_(connection), limits_(limits) {
  Schedule(&age_step_, limits_.age);
  Schedule(&idle_step_, limits_.idle / kIdleLooks);
}

void ConnectionLifetime::Schedule(Timer* step, absl::Duration after) {
  if (after == absl::InfiniteDuration()) return;
  constexpr absl::Duration kLongest = absl::Hours(24 * 365);
  poller_->Schedule(step, Poller::NowNs() + absl::ToInt64Nanoseconds(
                                                std::min(after, kLongest)));
}

// What is sent or ended comes last in each: it may fail, and close the
// connection.

void ConnectionLifetime::OnAge() {
  Schedule(&grace_step_, limits_.grace);
  connection_->SendGoAway();
}

void ConnectionLifetime::OnGraceOver() {
  Schedule(&close_step_, kCloseTimeout);
  connection_->EndCalls(
      absl::UnavailableError("the connection is beyond its age and grace"));
}

void ConnectionLifetime::OnCloseTimeout() {
  connection_->Close(absl::UnavailableError(
      "the client did not close a connection beyond its age"));
}

void ConnectionLifetime::OnIdleLook() {
  const uint64_t frames = connection_->frames_of_calls();
  const bool none_came = std::exchange(frames_seen_, frames) == frames;
  const bool has_none = connection_->live_calls() == 0;
  const bool had_none = std::exchange(had_no_calls_, has_none);
  idle_looks_ = none_came && has_none && had_none ? idle_looks_ + 1 : 0;
  if (idle_looks_ == 2 * kIdleLooks) {
    connection_->Close(absl::UnavailableError(
        "the client did not close a connection that was idle too long"));
    return;
  }
  Schedule(&idle_step_, limits_.idle / kIdleLooks);
  if (idle_looks_ == kIdleLooks) connection_->SendGoAway();
}

}  // namespace rdma
