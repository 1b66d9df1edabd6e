#include "rdma_transport/poller_monitor.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "rdma_transport/poller.h"

namespace rdma {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(1);
// After so many quiet looks in a row: where work comes now and then, looks are
// most of what the process does.
constexpr int kQuietLooksToSlowDown = 8;
constexpr absl::Duration kQuietInterval = absl::Milliseconds(5);
// After so many the monitor sleeps, some 100 ms after the last work. Whoever
// wakes it pays for that, before its own work.
constexpr int kQuietLooksToSleep = 27;

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
  int quiet_looks = 0;
  const auto awake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || !asleep_.load(std::memory_order_relaxed);
  };
  while (!stop_) {
    mutex_.AwaitWithTimeout(
        absl::Condition(&stop_),
        quiet_looks < kQuietLooksToSlowDown ? kInterval : kQuietInterval);
    if (stop_) return;
    quiet_looks = Look() ? quiet_looks + 1 : 0;
    if (quiet_looks < kQuietLooksToSleep) continue;
    asleep_.store(true, std::memory_order_seq_cst);
    // A poller that woke before it could see us asleep is seen here.
    if (Look()) mutex_.Await(absl::Condition(&awake));
    asleep_.store(false, std::memory_order_seq_cst);
    quiet_looks = 0;
  }
}

bool PollerMonitor::Look() {
  bool all_quiet = true;
  for (Watched& watched : watched_) {
    Poller& poller = *watched.poller;
    if (poller.IsNeglected(watched.observed)) poller.SendKeeper();
    watched.observed = poller.Observe();
    if (!poller.IsQuiet()) all_quiet = false;
  }
  return all_quiet;
}

}  // namespace rdma
