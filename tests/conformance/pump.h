// Drives both ends of a test from one thread until something happens.
//
// A device may make progress only while its owner polls, and a connection has
// two ends, so a test that waits for one CQ must go on polling all of them. The
// pump polls every CQ and connection manager that it was told to watch and
// keeps what it finds in a queue for each, from which the test takes it.
//
//   pump.Watch(cq);
//   ibv_wc wc = pump.Await(cq);
//
// Nothing sleeps: a wait ends with what it waits for, or when patience is over,
// which fails the test and says what was missing. After the first lost wait
// patience is short, so that a broken device fails a test in seconds.
//
// Thread rule: one thread.
#ifndef VERBENA_TESTS_CONFORMANCE_PUMP_H_
#define VERBENA_TESTS_CONFORMANCE_PUMP_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "rdma_transport/provider/provider.h"

namespace rdma::conformance {

class Pump {
 public:
  Pump(absl::Duration patience, absl::Duration silence)
      : patience_(patience), silence_(silence) {}
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // Polls `cq` or `manager` from now on. What is watched must be unwatched
  // before it is destroyed; a CQ or manager may be watched again.
  void Watch(ibv_cq* cq);
  void Unwatch(ibv_cq* cq);
  void Watch(ConnectionManager* manager);
  void Unwatch(ConnectionManager* manager);

  // Polls everything once.
  void Turn();

  // Turns until `done`; false, and a failed test that names `what`, when
  // patience ends.
  bool Until(const std::function<bool()>& done, std::string_view what);

  // The next completion of `cq`. After a lost wait, one that matches nothing.
  // REQUIRES: `cq` is watched.
  ibv_wc Await(ibv_cq* cq);
  std::vector<ibv_wc> Await(ibv_cq* cq, size_t count);

  // The next event of `manager`, or nothing after a lost wait.
  // REQUIRES: `manager` is watched.
  std::optional<CmEvent> Await(ConnectionManager* manager);

  // Whether Await(cq) would return at once. REQUIRES: `cq` is watched.
  bool Has(ibv_cq* cq) { return !Find(cq)->found.empty(); }

  // Turns for a while and fails the test if `cq` has a completion.
  void ExpectSilence(ibv_cq* cq);
  void ExpectSilence(ConnectionManager* manager);
  // Turns for `time`.
  void TurnFor(absl::Duration time);

  absl::Duration patience() const { return patience_; }
  absl::Duration silence() const { return silence_; }

 private:
  struct WatchedCq {
    ibv_cq* cq;
    std::deque<ibv_wc> found;
  };
  struct WatchedManager {
    ConnectionManager* manager;
    std::deque<CmEvent> found;
  };

  WatchedCq* Find(ibv_cq* cq);
  WatchedManager* Find(ConnectionManager* manager);

  absl::Duration patience_;
  absl::Duration silence_;
  std::vector<WatchedCq> cqs_;
  std::vector<WatchedManager> managers_;
};

}  // namespace rdma::conformance

#endif  // VERBENA_TESTS_CONFORMANCE_PUMP_H_
