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
// little later than that, spins are tried for a while that outlast it. If it
// comes a quarter sooner then, it was sleeping that took so long, and the
// longest spin becomes as long as that, until work comes later several times in
// a row; else tries become rarer. One side's try is enough: the other one's
// sleeps become shorter by it, and its own try gets it out, too. What is judged
// is time, not how often work came: what comes in bursts still comes as late.
//
//   IdleSpin spin(absl::Microseconds(50), absl::Microseconds(400));
//   if (found_work && spin.listens()) spin.OnFound(time_without_work_ns);
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
  // stays that. Else it never exceeds eight times `longest`. REQUIRES: shortest
  // <= longest.
  IdleSpin(absl::Duration shortest, absl::Duration longest);

  int64_t limit_ns() const { return limit_ns_; }

  // Whether it matters when a driver finds work without having slept.
  bool listens() const { return is_trying_ || longest_ns_ > usual_longest_ns_; }
  // One has, so long after it had run out of it. REQUIRES: listens().
  void OnFound(int64_t idle_ns);

  // A driver that had slept was woken, so long after it had run out of work.
  void OnWoken(int64_t idle_ns);

 private:
  // Later than so many of the longest spins, work has nothing to do with them.
  static constexpr int64_t kNear = 8;
  static constexpr int kSleepsToTry = 16;
  static constexpr int kMostSleepsToTry = 1024;
  // A try lasts as long as so many sleeps did.
  static constexpr int64_t kTrySleeps = 8;
  // What is true of a spin that became longer: so many times in a row work may
  // be late, and after it was of use so often it has to be tried anew.
  static constexpr int kForgiven = 3;
  static constexpr int kUsesToRenew = 1024;

  void StartTry();
  void Judge(int64_t idle_ns);
  void EndTry(bool was_worth_it);
  void BeUsual();
  void CountNoSleeps();

  const int64_t shortest_ns_;
  const int64_t usual_longest_ns_;
  int64_t longest_ns_;
  int64_t limit_ns_;

  // Sleeps that ended a little later than the longest spin, since work came
  // sooner.
  int sleeps_ = 0;
  int64_t slept_ns_ = 0;  // in all
  int sleeps_to_try_ = kSleepsToTry;

  bool is_trying_ = false;
  int64_t sleep_ns_ = 0;   // what one was, on average, before the try
  int64_t sooner_ns_ = 0;  // time of waiting for what came sooner than that
  int64_t as_late_ns_ = 0;

  int late_ = 0;  // in a row
  int uses_ = 0;
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_IDLE_SPIN_H_
