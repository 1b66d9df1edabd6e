// How long a driver that finds nothing to do polls on before it sleeps.
//
// Sleeping costs the time to wake: microseconds on a bare machine, a fifth of a
// millisecond and more in some virtual ones. Two peers can keep each other in
// it, each asleep by the time that the other one is awake and has answered,
// although without sleeping their messages would come within the spin. So the
// limit grows while work comes soon after sleep began, as far as the longest
// spin, and shrinks again once it comes later than any spin would last: who has
// nothing to do burns no CPU. Linux's haltpoll governor of idle CPUs goes by
// the same rule.
//
// Where two peers that keep each other asleep take longer for it than the
// longest spin, that rule never gets them out. So where work keeps coming a
// little later than that, a few spins are tried that would outlast it. If it
// comes in half the time then, it was sleeping that took so long, and the
// longest spin becomes as long as that; else tries become rarer and rarer.
//
//   IdleSpin spin(absl::Microseconds(50), absl::Microseconds(400));
//   if (found_work && spin.is_trying()) spin.OnFound(time_without_work_ns);
//   if (idle_ns < spin.limit_ns()) continue;  // poll again
//   Sleep();
//   spin.OnWoken(time_without_work_ns);
//
// Thread rule: the poller's driver.
#ifndef VERBENA_RDMA_TRANSPORT_IDLE_SPIN_H_
#define VERBENA_RDMA_TRANSPORT_IDLE_SPIN_H_

#include <cstdint>

#include "absl/time/time.h"

namespace rdma {

class IdleSpin {
 public:
  // The limit is `shortest` to begin with; where `longest` is no longer it
  // stays that. REQUIRES: shortest <= longest.
  IdleSpin(absl::Duration shortest, absl::Duration longest);

  int64_t limit_ns() const { return limit_ns_; }

  // Whether it matters when a driver finds work without having slept.
  bool is_trying() const { return tries_left_ > 0; }
  // One has, so long after it had run out of it. REQUIRES: is_trying().
  void OnFound(int64_t idle_ns);

  // A driver that had slept was woken, so long after it had run out of work.
  void OnWoken(int64_t idle_ns);

 private:
  // Later than so many of the longest spins, work has nothing to do with them.
  static constexpr int64_t kNear = 8;
  // Times in a row that work may be late for once.
  static constexpr int kForgiven = 3;
  static constexpr int kTries = 8;
  static constexpr int kSleepsToTry = 16;
  static constexpr int kMostSleepsToTry = 4096;

  void StartTries();
  void EndTries();
  void CountNoSleeps();

  const int64_t shortest_ns_;
  const int64_t usual_longest_ns_;
  int64_t longest_ns_;
  int64_t limit_ns_;
  int late_ = 0;  // in a row

  // Sleeps that ended a little later than the longest spin, since the last try.
  int sleeps_ = 0;
  int64_t slept_ns_ = 0;  // in all
  int sleeps_to_try_ = kSleepsToTry;

  int tries_left_ = 0;
  int quick_tries_ = 0;
  int64_t sleep_ns_ = 0;  // what one was, on average, before the tries
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_IDLE_SPIN_H_
