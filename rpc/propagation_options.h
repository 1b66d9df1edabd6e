// What a call that a handler makes takes over from the call that it serves; see
// ClientContext::FromServerContext.
//
//   auto context = rpc::ClientContext::FromServerContext(
//       *server_context,
//       rpc::PropagationOptions().disable_deadline_propagation());
//
// By default all of it. There is no census here, so that what is said of it has
// no effect.
//
// Thread rule: a value type; one thread at a time.
#ifndef VERBENA_RPC_PROPAGATION_OPTIONS_H_
#define VERBENA_RPC_PROPAGATION_OPTIONS_H_

#include <cstdint>

namespace rpc {

class PropagationOptions {
 public:
  PropagationOptions& enable_deadline_propagation() { return Add(kDeadline); }
  PropagationOptions& disable_deadline_propagation() {
    return Remove(kDeadline);
  }
  PropagationOptions& enable_census_stats_propagation() {
    return Add(kCensusStats);
  }
  PropagationOptions& disable_census_stats_propagation() {
    return Remove(kCensusStats);
  }
  PropagationOptions& enable_census_tracing_propagation() {
    return Add(kCensusTracing);
  }
  PropagationOptions& disable_census_tracing_propagation() {
    return Remove(kCensusTracing);
  }
  PropagationOptions& enable_cancellation_propagation() {
    return Add(kCancellation);
  }
  PropagationOptions& disable_cancellation_propagation() {
    return Remove(kCancellation);
  }

  // One bit each, as GRPC_PROPAGATE_... number them.
  uint32_t c_bitmask() const { return bits_; }

  bool deadline() const { return (bits_ & kDeadline) != 0; }
  bool cancellation() const { return (bits_ & kCancellation) != 0; }

 private:
  enum : uint32_t {
    kDeadline = 1,
    kCensusStats = 2,
    kCensusTracing = 4,
    kCancellation = 8,
    kDefaults = 0xffff,
  };

  PropagationOptions& Add(uint32_t bit) {
    bits_ |= bit;
    return *this;
  }
  PropagationOptions& Remove(uint32_t bit) {
    bits_ &= ~bit;
    return *this;
  }

  uint32_t bits_ = kDefaults;
};

}  // namespace rpc

#endif  // VERBENA_RPC_PROPAGATION_OPTIONS_H_
