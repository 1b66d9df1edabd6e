// How long a server's connection may last: gRPC's limits of age and idleness.
//
//   at its age           the client is asked to go elsewhere with new calls;
//                        those that run, and those that crossed the request on
//                        the way, go on
//   the grace after it   what still runs is ended, and what comes is refused
//   idle for so long     the client is asked to go; where it stays, and stays
//                        idle for as long again, the connection is closed
//
// A client that was asked closes the connection when its last call is over. It
// is left to the client: whatever it had sent before it heard has been answered
// by then.
//
// Idleness is looked for a few times in its period, so that calls need not tell
// when they begin and end: a connection goes up to an eighth later than it
// could. See docs/flow_control.md. Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_CONNECTION_LIFETIME_H_
#define VERBENA_RDMA_TRANSPORT_CONNECTION_LIFETIME_H_

#include <cstdint>

#include "absl/random/random.h"
#include "absl/time/time.h"
#include "rdma_transport/connection.h"
#include "rdma_transport/poller.h"
#include "rdma_transport/timer_wheel.h"
#include "rpc/transport.h"

namespace rdma {

class ConnectionLifetime final {
 public:
  struct Limits {
    absl::Duration age = absl::InfiniteDuration();
    absl::Duration grace = absl::InfiniteDuration();  // after the age
    absl::Duration idle = absl::InfiniteDuration();

    bool any() const;
  };

  // What the options say; the age is up to 10 % more or less, so that clients
  // that connected together do not come back together.
  static Limits LimitsOf(const rpc::TransportOptions& options,
                         absl::BitGen& random);

  // `connection` and `poller` outlive it. It may close the connection, whose
  // owner may destroy it then.
  ConnectionLifetime(Poller* poller, Connection* connection,
                     const Limits& limits);

  ConnectionLifetime(const ConnectionLifetime&) = delete;
  ConnectionLifetime& operator=(const ConnectionLifetime&) = delete;

 private:
  static constexpr int kIdleLooks = 8;

  // Calls a function that may end in this object's destruction.
  template <void (ConnectionLifetime::*kFunction)()>
  class Step final : public Timer {
   public:
    explicit Step(ConnectionLifetime* lifetime) : lifetime_(lifetime) {}

   private:
    void OnTimer() override { (lifetime_->*kFunction)(); }
    ConnectionLifetime* const lifetime_;
  };

  void OnAge();
  void OnGraceOver();
  void OnCloseTimeout();
  void OnIdleLook();
  void Schedule(Timer* step, absl::Duration after);

  Poller* const poller_;
  Connection* const connection_;
  const Limits limits_;
  uint64_t frames_seen_ = 0;
  bool had_no_calls_ = false;  // at the last look
  int idle_looks_ = 0;         // in a row
  Step<&ConnectionLifetime::OnAge> age_step_{this};
  Step<&ConnectionLifetime::OnGraceOver> grace_step_{this};
  Step<&ConnectionLifetime::OnCloseTimeout> close_step_{this};
  Step<&ConnectionLifetime::OnIdleLook> idle_step_{this};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_CONNECTION_LIFETIME_H_
