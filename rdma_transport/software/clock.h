// Time as an argument: whatever the software device does with time (RNR timers,
// handshake timeouts) asks a Clock, so that a simulation can own it.
//
//   rdma::soft::Clock* clock = rdma::soft::Clock::System();
//   const int64_t deadline_ns = clock->NowNanoseconds() + 1'000'000;
//
// Thread rule: implementations are thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_CLOCK_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_CLOCK_H_

#include <cstdint>

namespace rdma::soft {

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since some fixed moment; never goes back.
  virtual int64_t NowNanoseconds() = 0;

  // CLOCK_MONOTONIC. Lives for ever.
  static Clock* System();
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_CLOCK_H_
