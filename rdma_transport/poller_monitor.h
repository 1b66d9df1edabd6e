// Sees to it that every poller is looked after.
//
// A poller may be open with nobody in it: its driver left, or runs a callback
// that blocks. The monitor is one thread for the process that then looks at the
// pollers, and calls a keeper to one that two looks in a row, a millisecond
// apart, found open, with no turn in between and nobody asleep on its events. A
// look takes the CPU from a thread that polls. So the monitor sleeps as long as
// drivers push their pollers' watchdogs, and where all pollers are asleep: an
// idle process costs nothing. Where keepers were needed lately it looks every
// millisecond.
//
// Thread-safe.
#ifndef VERBENA_RDMA_TRANSPORT_POLLER_MONITOR_H_
#define VERBENA_RDMA_TRANSPORT_POLLER_MONITOR_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "rdma_transport/provider/unique_fd.h"

namespace rdma {

class Poller;
class PollerWatchdog;

// What is seen of a poller at a look.
struct PollerObservation {
  bool unattended = false;  // open, and nobody sleeps on its events
  uint32_t turns = 0;
};

class PollerMonitor {
 public:
  static PollerMonitor& Get();

  // RESOURCE_EXHAUSTED: no more descriptors.
  absl::Status Prepare(const PollerWatchdog& watchdog);
  // The watchdog is to be pushed next. REQUIRES: it was prepared.
  void Add(Poller* poller);
  // No keeper is called for `poller` after this.
  void Remove(Poller* poller);

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
    // Each is quiet, or its watchdog will wake the monitor.
    bool all_guarded = true;
  };

  PollerMonitor() = default;

  absl::Status WakeFor(int fd, uint32_t events);
  void AwaitStop(int64_t ns) const;
  void Main();
  Findings Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Held while the thread is started or ended.
  absl::Mutex lifecycle_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  std::vector<Watched> watched_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(lifecycle_mutex_);
  // Made once, by the first Prepare.
  UniqueFd epoll_fd_;
  UniqueFd stop_fd_;  // an eventfd, readable where stop_
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_POLLER_MONITOR_H_
