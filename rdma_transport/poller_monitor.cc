#include "rdma_transport/poller_monitor.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "rdma_transport/poller.h"

namespace rdma {
namespace {

// Between the look that finds a poller unattended and the one that knows.
constexpr absl::Duration kInterval = absl::Milliseconds(1);
// Between others, after so many looks in a row without a neglected poller.
constexpr absl::Duration kCalmInterval = absl::Milliseconds(5);
constexpr int kCalmLooksToSlowDown = 100;
// After so many in a row that found all pollers asleep the monitor sleeps, some
// 100 ms after the last work. Whoever wakes it pays for that, before its own
// work.
constexpr int kQuietLooksToSleep = 20;

}  // namespace

PollerMonitor& PollerMonitor::Get() {
  static auto* const monitor = new PollerMonitor;
  return *monitor;
}

void PollerMonitor::Add(Poller* poller) {
  absl::MutexLock lifecycle_lock(&lifecycle_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    watched_.push_back({poller, {}});
    stop_ = false;
    asleep_.store(false, std::memory_order_seq_cst);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Main(); });
}

void PollerMonitor::Remove(Poller* poller) {
  absl::MutexLock lifecycle_lock(&lifecycle_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    watched_.erase(std::remove_if(watched_.begin(), watched_.end(),
                                  [poller](const Watched& watched) {
                                    return watched.poller == poller;
                                  }),
                   watched_.end());
    if (!watched_.empty()) return;
    stop_ = true;
  }
  // The last one out ends the thread, so that nothing is left running.
  if (thread_.joinable()) thread_.join();
}

void PollerMonitor::Wake() {
  absl::MutexLock lock(&mutex_);
  asleep_.store(false, std::memory_order_seq_cst);
}

void PollerMonitor::Main() {
  pthread_setname_np(pthread_self(), "verbena-monitor");
  absl::MutexLock lock(&mutex_);
  const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || !asleep_.load(std::memory_order_relaxed);
  };
  int calm_looks = 0;
  int quiet_looks = 0;
  bool look_soon = true;
  while (true) {
    mutex_.AwaitWithTimeout(absl::Condition(&stop_),
                            look_soon ? kInterval : kCalmInterval);
    if (stop_) return;
    const Findings found = Look();
    calm_looks = found.any_neglected
                     ? 0
                     : std::min(calm_looks + 1, kCalmLooksToSlowDown);
    look_soon = found.any_unattended || calm_looks < kCalmLooksToSlowDown;
    quiet_looks = found.all_quiet ? quiet_looks + 1 : 0;
    if (quiet_looks < kQuietLooksToSleep) continue;
    asleep_.store(true, std::memory_order_seq_cst);
    // A poller that woke before it could see us asleep is seen here.
    if (Look().all_quiet) mutex_.Await(absl::Condition(&awake));
    asleep_.store(false, std::memory_order_seq_cst);
    quiet_looks = 0;
  }
}

PollerMonitor::Findings PollerMonitor::Look() {
  Findings found;
  for (Watched& watched : watched_) {
    Poller& poller = *watched.poller;
    if (poller.IsNeglected(watched.observed)) {
      found.any_neglected = true;
      poller.SendKeeper();
    }
    watched.observed = poller.Observe();
    if (watched.observed.unattended) found.any_unattended = true;
    if (!poller.IsQuiet()) found.all_quiet = false;
  }
  return found;
}

}  // namespace rdma
