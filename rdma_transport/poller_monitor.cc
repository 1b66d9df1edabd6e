#include "rdma_transport/poller_monitor.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "rdma_transport/poller.h"
#include "rdma_transport/poller_watchdog.h"
#include "rdma_transport/verbs/verbs_error.h"

namespace rdma {
namespace {

// Between the look that finds a poller unattended and the one that knows, and
// as long as keepers were needed lately.
constexpr int kIntervalMs = 1;
// Between others, at least, however many watchdogs go off; at most where a
// driver is there but does not get to push its own.
constexpr int kCalmIntervalMs = 5;
constexpr int kUntilAWatchdog = -1;
constexpr int64_t kNsPerMs = 1'000'000;
// After so many looks in a row without a neglected poller no more are needed,
// and after so many that found all pollers asleep.
constexpr int kCalmLooks = 100;
constexpr int kQuietLooks = 20;

}  // namespace

PollerMonitor& PollerMonitor::Get() {
  static auto* const monitor = new PollerMonitor;
  return *monitor;
}

absl::Status PollerMonitor::Prepare(const PollerWatchdog& watchdog) {
  absl::MutexLock lifecycle_lock(&lifecycle_mutex_);
  if (!epoll_fd_) {
    epoll_fd_.reset(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_fd_) return VerbsError("epoll_create1", errno);
  }
  if (!stop_fd_) {
    UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop) return VerbsError("eventfd", errno);
    if (absl::Status status = WakeFor(stop.get(), EPOLLIN); !status.ok()) {
      return status;
    }
    stop_fd_ = std::move(stop);
  }
  // Each time that it goes off wakes the monitor once, and nobody reads it.
  // Closing it takes it from the epoll instance.
  return WakeFor(watchdog.fd(), EPOLLIN | EPOLLET);
}

absl::Status PollerMonitor::WakeFor(int fd, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  return epoll_ctl(epoll_fd_.get(), EPOLL_CTL_ADD, fd, &event) != 0
             ? VerbsError("epoll_ctl", errno)
             : absl::OkStatus();
}

void PollerMonitor::Add(Poller* poller) {
  absl::MutexLock lifecycle_lock(&lifecycle_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    watched_.push_back({poller, {}});
    stop_ = false;
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
  if (!thread_.joinable()) return;
  eventfd_write(stop_fd_.get(), 1);
  thread_.join();
  eventfd_t stops;
  eventfd_read(stop_fd_.get(), &stops);
}

void PollerMonitor::Main() {
  pthread_setname_np(pthread_self(), "verbena-monitor");
  int calm_looks = 0;
  int quiet_looks = 0;
  int interval_ms = kIntervalMs;
  int timeout_ms = kIntervalMs;
  int64_t looked_ns = Poller::NowNs();
  while (true) {
    // What went off does not matter: there are few pollers.
    epoll_event events[4];
    epoll_wait(epoll_fd_.get(), events, 4, timeout_ms);
    AwaitStop(looked_ns + interval_ms * kNsPerMs - Poller::NowNs());
    absl::MutexLock lock(&mutex_);
    if (stop_) return;
    const Findings found = Look();
    calm_looks = found.any_neglected ? 0 : std::min(calm_looks + 1, kCalmLooks);
    quiet_looks = found.all_quiet ? std::min(quiet_looks + 1, kQuietLooks) : 0;
    const bool calm = calm_looks == kCalmLooks || quiet_looks == kQuietLooks;
    interval_ms = found.any_unattended || !calm ? kIntervalMs : kCalmIntervalMs;
    timeout_ms = interval_ms == kCalmIntervalMs && found.all_guarded
                     ? kUntilAWatchdog
                     : interval_ms;
    looked_ns = Poller::NowNs();
  }
}

void PollerMonitor::AwaitStop(int64_t ns) const {
  if (ns <= 0) return;
  const timespec time = {0, ns};
  pollfd stop = {stop_fd_.get(), POLLIN, 0};
  ppoll(&stop, 1, &time, nullptr);
}

// A poller is not quiet any more when a thread wakes from its events, and that
// one pushes the watchdog first.
PollerMonitor::Findings PollerMonitor::Look() {
  Findings found;
  const int64_t now_ns = Poller::NowNs();
  for (Watched& watched : watched_) {
    Poller& poller = *watched.poller;
    if (poller.IsNeglected(watched.observed)) {
      found.any_neglected = true;
      poller.SendKeeper();
    }
    watched.observed = poller.Observe();
    if (watched.observed.unattended) found.any_unattended = true;
    if (poller.IsQuiet()) continue;
    found.all_quiet = false;
    if (!poller.watchdog_.IsRunning(now_ns)) found.all_guarded = false;
  }
  return found;
}

}  // namespace rdma
