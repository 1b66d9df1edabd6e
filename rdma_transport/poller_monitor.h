// Sees to it that every poller is looked after.
//
// A poller may be open with nobody in it: its driver left, or runs a callback
// that blocks. The monitor is one thread for the process that looks at the
// active pollers, and calls a keeper to one that two looks in a row found open,
// with no turn in between and nobody asleep on its events. A look takes the CPU
// from a thread that polls, so there are few where they find nothing: one comes
// a millisecond after the last where that one found a poller open, or where
// keepers were needed lately, otherwise five. Where all pollers are asleep the
// monitor soon sleeps, too: an idle process costs nothing.
//
// Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_POLLER_MONITOR_H_
#define VERBENA_RDMA_TRANSPORT_POLLER_MONITOR_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace rdma {

class Poller;

// What is seen of a poller at a look.
struct PollerObservation {
  bool unattended = false;  // open, and nobody sleeps on its events
  uint32_t turns = 0;
};

class PollerMonitor {
 public:
  static PollerMonitor& Get();

  void Add(Poller* poller);
  // No keeper is called for `poller` after this.
  void Remove(Poller* poller);

  // Something happens on some poller. Costs a load unless the monitor sleeps.
  void Activate() {
    if (asleep_.load(std::memory_order_seq_cst)) Wake();
  }

 private:
  struct Watched {
    Poller* poller;
    PollerObservation observed;
  };

  // Of all pollers together.
  struct Findings {
    bool any_neglected = false;
    bool any_unattended = false;
    bool all_quiet = true;
  };

  PollerMonitor() = default;

  void Main();
  Findings Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake();

  // Held while the thread is started or ended.
  absl::Mutex lifecycle_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(lifecycle_mutex_);
  std::atomic<bool> asleep_{false};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_POLLER_MONITOR_H_
