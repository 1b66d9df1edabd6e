// The wall clock, which deadlines are points of. Timers run by the steady clock
// (Poller::NowNs), so a call with a deadline needs both, on both sides, and to
// read a clock takes as long as a tenth of a short call.
//
//   int64_t left_ns = NsUntil(deadline);        // one reading
//   int64_t unix_ns = wall_clock.UnixNs(now_ns);  // as a rule none
#ifndef VERBENA_RDMA_TRANSPORT_WALL_CLOCK_H_
#define VERBENA_RDMA_TRANSPORT_WALL_CLOCK_H_

#include <time.h>

#include <cstdint>

#include "absl/time/time.h"

namespace rdma {

// clock_gettime(2), in nanoseconds.
inline int64_t ReadClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What is left until `deadline`; 0 if it has passed.
inline int64_t NsUntil(absl::Time deadline) {
  const int64_t at_ns = absl::ToUnixNanos(deadline);
  const int64_t now_ns = ReadClockNs(CLOCK_REALTIME);
  return at_ns <= now_ns ? 0 : at_ns - now_ns;
}

// The wall clock by the steady one: what lies between the two is read once a
// millisecond. Who has the wall clock set sees it so much later.
// Thread rule: one thread at a time.
class WallClock {
 public:
  // Another `read` than ReadClockNs: for tests.
  using Read = int64_t (*)(clockid_t);
  explicit WallClock(Read read = ReadClockNs) : read_(read) {}

  // The time since 1970, now that the steady clock says `steady_ns`.
  int64_t UnixNs(int64_t steady_ns) {
    if (steady_ns >= renew_at_ns_) Renew();
    return steady_ns + between_ns_;
  }

 private:
  static constexpr int64_t kKeptNs = 1'000'000;
  static constexpr int64_t kMostBetweenNs = 10'000;
  static constexpr int kMostTries = 3;

  // Behind by what passes between the last two readings. Where the thread was
  // held up there, they are taken again.
  void Renew() {
    for (int tries = 0; tries < kMostTries; ++tries) {
      const int64_t before_ns = read_(CLOCK_MONOTONIC);
      const int64_t unix_ns = read_(CLOCK_REALTIME);
      const int64_t after_ns = read_(CLOCK_MONOTONIC);
      between_ns_ = unix_ns - after_ns;
      renew_at_ns_ = after_ns + kKeptNs;
      if (after_ns - before_ns <= kMostBetweenNs) return;
    }
    renew_at_ns_ = INT64_MIN;  // next time, then
  }

  const Read read_;
  int64_t between_ns_ = 0;
  int64_t renew_at_ns_ = INT64_MIN;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_WALL_CLOCK_H_
