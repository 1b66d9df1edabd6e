// Who drives a poller: the threads that wait for their turn, and its keepers.
#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rdma_transport/poller.h"
#include "rdma_transport/poller_monitor.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// A driver that lost its turn waits this long for it before it parks: the
// thread that took it may only have had something to send.
constexpr int64_t kRegainNs = 20'000;
constexpr int kMaxKeepers = 64;

}  // namespace

bool Poller::EnterSoon() {
  const int64_t give_up_ns = NowNs() + kRegainNs;
  while (!turnstile_.TryEnter()) {
    if (NowNs() >= give_up_ns) return false;
    CpuRelax();
  }
  return true;
}

// ---- Threads that wait.

rpc::Event* Poller::FirstWaiter() const {
  const auto found =
      std::find_if(waiters_.begin(), waiters_.end(),
                   [](const rpc::Event* waiter) { return !waiter->is_set(); });
  return found == waiters_.end() ? nullptr : *found;
}

bool Poller::HasWaiter() const {
  absl::MutexLock lock(&waiters_mutex_);
  return FirstWaiter() != nullptr;
}

bool Poller::NudgeFirstWaiter() {
  absl::MutexLock lock(&waiters_mutex_);
  rpc::Event* const waiter = FirstWaiter();
  if (waiter != nullptr) waiter->Nudge();
  return waiter != nullptr;
}

void Poller::WaitForTurn(rpc::Event& event) {
  {
    absl::MutexLock lock(&waiters_mutex_);
    waiters_.push_back(&event);
    waiter_count_.fetch_add(1, std::memory_order_seq_cst);
  }
  event.PrepareSleep();
  if (turnstile_.IsOpen() || guests_unwanted_.load(std::memory_order_seq_cst)) {
    event.CancelSleep();
  } else {
    event.Sleep();
  }
  absl::MutexLock lock(&waiters_mutex_);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &event));
  waiter_count_.fetch_sub(1, std::memory_order_seq_cst);
}

bool Poller::IsLeftToGuests(LeftBehind left) const {
  if (!guest_comes_back_.load(std::memory_order_relaxed)) return false;
  return (guests_have_all_.load(std::memory_order_relaxed) ||
          left.calls <= calls_.live_for_guests()) &&
         sleepers_.load(std::memory_order_seq_cst) == 0;
}

void Poller::EndVisits() {
  guest_comes_back_.store(false, std::memory_order_relaxed);
  RunNow([] {});  // who leaves calls a keeper, where one is needed
}

void Poller::TurnGuestsOut() {
  guests_unwanted_.store(true, std::memory_order_seq_cst);
  {
    absl::MutexLock lock(&waiters_mutex_);
    for (rpc::Event* const waiter : waiters_) waiter->Nudge();
  }
  WakeSleepers();
  if (guests_.fetch_sub(1, std::memory_order_seq_cst) > 1) {
    guests_gone_.WaitUntil(absl::InfiniteFuture());
  }
}

// ---- Keepers.

void Poller::StartKeepers() {
  if (keepers_started_.exchange(true)) return;
  PollerMonitor::Get().Add(this);
  watchdog_.Push(NowNs());
  SendKeeper();
}

void Poller::StopKeepers() {
  if (!keepers_started_.load()) return;
  PollerMonitor::Get().Remove(this);
  std::vector<std::thread> keepers;
  {
    absl::MutexLock lock(&keepers_mutex_);
    stopping_.store(true, std::memory_order_seq_cst);
    keepers.swap(keepers_);
  }
  // Nobody reads the wake-up any more: it wakes whoever goes to sleep, too.
  WakeSleepers();
  for (std::thread& keeper : keepers) keeper.join();
  keepers_started_.store(false);
}

bool Poller::IsKeeperThread() const {
  absl::MutexLock lock(&keepers_mutex_);
  return std::any_of(keepers_.begin(), keepers_.end(),
                     [](const std::thread& keeper) {
                       return keeper.get_id() == std::this_thread::get_id();
                     });
}

void Poller::KeeperMain() {
  pthread_setname_np(pthread_self(), "verbena-keeper");
  bool was_called = true;
  while (!stopping_.load(std::memory_order_seq_cst)) {
    const bool entered = EnterSoon();
    if (std::exchange(was_called, false)) {
      coming_keepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
    if (!entered) {
      was_called = ParkKeeper();
      continue;
    }
    guest_comes_back_.store(false, std::memory_order_relaxed);
    if (DriveForOthers() && Leave()) was_called = ParkKeeper();
  }
}

bool Poller::ParkKeeper() {
  absl::MutexLock lock(&keepers_mutex_);
  ++parked_keepers_;
  active_keepers_.fetch_sub(1, std::memory_order_seq_cst);
  const auto called = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(keepers_mutex_) {
    return called_keepers_ > 0 || stopping_.load();
  };
  keepers_mutex_.Await(absl::Condition(&called));
  active_keepers_.fetch_add(1, std::memory_order_seq_cst);
  --parked_keepers_;
  if (called_keepers_ == 0) return false;
  --called_keepers_;
  return true;
}

void Poller::SendKeeper() {
  absl::MutexLock lock(&keepers_mutex_);
  if (stopping_.load() || !keepers_started_.load()) return;
  // One that comes waits for a CPU only, and so would another one.
  if (coming_keepers_.load(std::memory_order_seq_cst) > 0) return;
  if (parked_keepers_ > 0) {
    ++called_keepers_;
    coming_keepers_.fetch_add(1, std::memory_order_seq_cst);
  } else if (keepers_.size() < kMaxKeepers) {
    coming_keepers_.fetch_add(1, std::memory_order_seq_cst);
    active_keepers_.fetch_add(1, std::memory_order_seq_cst);
    try {
      keepers_.emplace_back([this] { KeeperMain(); });
    } catch (const std::system_error& error) {
      // The monitor tries again.
      coming_keepers_.fetch_sub(1, std::memory_order_seq_cst);
      active_keepers_.fetch_sub(1, std::memory_order_seq_cst);
      static auto* const limiter = new rpc::LogLimiter(absl::Seconds(10));
      if (limiter->Allow()) {
        rpc::Log(rpc::LogLevel::kWarning,
                 absl::StrCat("no thread to drive a poller: ", error.what()));
      }
    }
  }
}

bool Poller::IsQuiet() const {
  return sleepers_.load(std::memory_order_seq_cst) > 0 &&
         !turnstile_.LooksHeld();
}

PollerObservation Poller::Observe() const {
  return {.unattended = !turnstile_.LooksHeld() &&
                        sleepers_.load(std::memory_order_seq_cst) == 0,
          .turns = turns_.load(std::memory_order_relaxed)};
}

// Threads that enter to send something do not count: they do not poll.
bool Poller::IsNeglected(const PollerObservation& last) const {
  const PollerObservation now = Observe();
  return last.unattended && now.unattended && now.turns == last.turns;
}

}  // namespace rdma
