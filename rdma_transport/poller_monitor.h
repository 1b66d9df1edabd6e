// Sees to it that every poller is looked after.
//
// A poller may be open with nobody in it: its driver left, or runs a callback
// that blocks. The monitor is one thread for the process that looks at the
// active pollers, every millisecond while they have work, and calls a keeper to
// one that stood open and took no turn for a whole interval while nobody sleeps
// on its events. Where look after look finds all pollers asleep it looks every
// five, and soon sleeps, too: an idle process costs nothing.
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
  bool held = true;
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

  PollerMonitor() = default;

  void Main();
  // Returns whether all pollers are quiet.
  bool Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
