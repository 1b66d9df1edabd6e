#include "rdma_transport/software/clock.h"

#include <ctime>

namespace rdma::soft {
namespace {

class SystemClock final : public Clock {
 public:
  int64_t NowNanoseconds() override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

}  // namespace

Clock* Clock::System() {
  static SystemClock* const clock = new SystemClock;
  return clock;
}

}  // namespace rdma::soft
