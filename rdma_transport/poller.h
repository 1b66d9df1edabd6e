// A poller: one CQ, one SRQ, the connections and calls that use them, timers,
// and whoever drives it all.
//
// A poller has no thread that works on it as such. Whoever holds its turnstile
// drives it: a thread that blocks in a call (Wait), a thread that has something
// to send and finds nobody driving (Run), else one of the poller's keepers,
// threads that sleep while nothing happens. All state of the poller and its
// connections belongs to the driver, so that its hot path takes no lock.
//
// The driver releases the turnstile around every callback that may block. Where
// one does, another thread (a waiting caller, or a keeper woken by the monitor)
// enters and drives on; the first one finds itself replaced when it returns.
//
// After a short spin without work the driver arms the CQ and sleeps on its
// completion channel. See docs/threading.md.
#ifndef VERBENA_RDMA_TRANSPORT_POLLER_H_
#define VERBENA_RDMA_TRANSPORT_POLLER_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rdma_transport/call.h"
#include "rdma_transport/device_context.h"
#include "rdma_transport/device_use.h"
#include "rdma_transport/idle_spin.h"
#include "rdma_transport/messages_being_read.h"
#include "rdma_transport/poller_watchdog.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/receive_pool.h"
#include "rdma_transport/timer_wheel.h"
#include "rdma_transport/transport_counters.h"
#include "rdma_transport/turnstile.h"
#include "rdma_transport/verbs/queues.h"
#include "rdma_transport/wall_clock.h"
#include "rpc/transport.h"

namespace rdma {

struct PollerObservation;

// What a poller knows of a connection. Called by the driver only.
class PolledConnection {
 public:
  // A frame came: the receive pool's Take gives its buffer, once. The last
  // thing a function on the way does may be to run a callback; see
  // Poller::RunCallback.
  virtual void OnReceive(const ibv_wc& wc) = 0;
  // A receive failed: the connection is broken.
  virtual void OnReceiveError(const ibv_wc& wc) = 0;
  // A send, READ, bind or invalidation completed.
  virtual void OnSendCompletion(const ibv_wc& wc) = 0;
  // At the end of a turn, where MarkDirty asked for it.
  virtual void Flush() = 0;
  // The device says that the connection is broken. `completions_lost`: none
  // will come any more of what was posted.
  virtual void OnDeviceError(const absl::Status& why,
                             bool completions_lost) = 0;
  // All that had arrived when NotifyWhenPolled was called has been handled.
  virtual void OnPolled() = 0;
  // Others want what it has of the CQ's entries and does not use.
  virtual void GiveBackCompletions() = 0;

  virtual ~PolledConnection() = default;

 private:
  friend class Poller;
  bool dirty_ = false;
  bool waits_for_completions_ = false;
};

// Who connection manager events go to: CmId::context points to one.
class CmEventHandler {
 public:
  virtual void OnCmEvent(CmEvent& event) = 0;

 protected:
  ~CmEventHandler() = default;
};

// Delivers a call's next event; what the poller's ready list is for.
class CallDeliverer {
 public:
  // Delivers what is due to `call`, which is not busy, one callback at most.
  // The last thing it does may be Poller::RunCallback.
  virtual void DeliverNext(Call& call) = 0;

 protected:
  ~CallDeliverer() = default;
};

class Poller {
 public:
  struct Options {
    // An odd number of cache lines, so that not all begin in the same few sets
    // of a cache.
    uint32_t receive_buffer_bytes = 161 * 64;
    uint64_t receive_budget_bytes = uint64_t{64} << 20;
    uint32_t srq_depth = kWishedSrqDepth;
    int cq_depth = kWishedCqDepth;  // to begin with
    // How long a driver without work polls; see IdleSpin.
    absl::Duration spin = absl::Microseconds(50);
    absl::Duration longest_spin = absl::Microseconds(400);
    uint32_t number = 0;  // of its call table
  };

  // Errors: what the device lacks.
  static absl::StatusOr<std::unique_ptr<Poller>> Create(
      std::shared_ptr<DeviceContext> context, CallDeliverer* deliverer,
      const Options& options);
  // REQUIRES: no connections and no calls are left, and no thread is inside.
  ~Poller();

  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // ---- Any thread.

  // Runs `task` as the driver: before this returns where no other thread
  // drives, else soon, on that thread. Tasks of one thread run in order. Runs
  // tasks of others as well: with no lock that one of them takes.
  void Run(absl::AnyInvocable<void()> task);

  // The same for a thread that has other work to do: where a thread of the
  // poller's sleeps, that one wakes and runs it.
  void RunElsewhere(absl::AnyInvocable<void()> task);

  // Runs `function` now as the driver, or returns false. `stay`: this thread
  // stays the driver where it became one: for the Wait that follows at once, or
  // the end of the callback that it is in.
  template <typename Function>
  bool RunNow(Function&& function, bool stay = false) {
    const bool was_driver = turnstile_.HeldByMe();
    if (!was_driver) {
      if (!turnstile_.TryEnter()) return false;
      RunTasks();  // that were left before
    }
    function();
    if (stay) [[likely]]
      return true;
    if (!was_driver) {
      if (RunsCallbackHere()) [[likely]] {
        OpenForCallback();
      } else {
        Leave();
      }
    }
    return true;
  }

  // Blocks until `event` is set, driving where nobody else does.
  void Wait(rpc::Event& event);
  // The same for a guest, who comes again and again, for what is begun by
  // others: a thread that takes events. Nobody else is called to drive while it
  // is away for a moment, where all calls, or those that there are, are for
  // guests; a monitor's look or two is a moment. Returns early where guests are
  // turned out.
  enum class Guest { kOfAllCalls, kOfSomeCalls };  // CallTable::SetForGuests
  void WaitAsGuest(rpc::Event& event, Guest guest);
  // No guest is to be reckoned with, until the next one comes.
  void EndVisits();
  // Has guests leave, lets no further ones in, and returns when they have.
  // Before Drain. Once.
  void TurnGuestsOut();
  // A thread may sleep on the poller's events while what it waits for happened
  // on this one. Keepers wait for nothing.
  void WakeWaiters() {
    if (sleeping_waiters_.load(std::memory_order_seq_cst) > 0) [[unlikely]]
      WakeSleepers();
  }

  // This thread is within a callback that RunCallback opened for: so the poller
  // stays until that returns.
  bool RunsCallbackHere() const { return runs_callback_ == this; }

  // For a thread that needs what the poller brings and may be in a callback:
  // drives where nobody else does, and runs no callback, until `done`. Where
  // one has been due for long, or nothing comes, it has another thread drive on
  // and returns; it may return early in any case.
  void DriveWithoutCallbacks(absl::FunctionRef<bool()> done);
  // Says of its thread, while set, that it has work to do and comes to drive
  // soon: who leaves the poller meanwhile need call nobody else for that.
  class ComesBack {
   public:
    explicit ComesBack(Poller* poller) : poller_(poller) {}
    ~ComesBack() { Set(false); }
    ComesBack(const ComesBack&) = delete;
    ComesBack& operator=(const ComesBack&) = delete;

    void Set(bool comes) {
      if (std::exchange(comes_, comes) == comes) return;
      poller_->coming_back_.fetch_add(comes ? 1 : -1,
                                      std::memory_order_relaxed);
    }

   private:
    Poller* const poller_;
    bool comes_ = false;
  };
  // Somebody drives, or sleeps until there is something to do.
  bool IsLookedAfter() const {
    return turnstile_.LooksHeld() ||
           sleepers_.load(std::memory_order_seq_cst) > 0;
  }

  // Starts the first keeper, so that the poller is driven while no thread
  // waits.
  void StartKeepers();
  // Ends the keepers. REQUIRES: not called by one.
  void StopKeepers();
  bool IsKeeperThread() const;

  // Drives until closed connections are gone and every callback was made, then
  // ends the keepers. What precedes destroying it.
  void Drain();

  // ---- The driver only.

  // Promises room in the CQ for so many completions of `connection`, and makes
  // it where need be, or has the other connections give back what they do not
  // use. RESOURCE_EXHAUSTED where the device has no more, or would have less
  // than `keep_free` left.
  absl::Status ReserveCompletions(const PolledConnection* connection,
                                  uint32_t count, uint32_t keep_free);
  // The same for a connection that could do with less: only out of the first
  // half, so that there is always room for others.
  absl::Status ReserveMoreCompletions(const PolledConnection* connection,
                                      uint32_t count);
  void UnreserveCompletions(uint32_t count);
  // Somebody waits for some.
  bool CompletionsAreWanted() const { return !notify_when_unreserved_.empty(); }
  // Has it flushed when completions were given back. Once for each call.
  void NotifyWhenUnreserved(PolledConnection* connection) {
    if (std::exchange(connection->waits_for_completions_, true)) return;
    notify_when_unreserved_.push_back(connection);
  }

  // OK, or why the poller is of no use any more: its connections are closed,
  // and further ones cannot be made.
  const absl::Status& failure() const { return failure_; }

  // Those added and not removed.
  uint32_t connection_count() const {
    return static_cast<uint32_t>(connections_.size());
  }
  void AddConnection(uint32_t qp_num, PolledConnection* connection);
  void RemoveConnection(uint32_t qp_num);
  // Its OnPolled is called when the CQ has been seen empty.
  void NotifyWhenPolled(PolledConnection* connection) {
    notify_when_polled_.push_back(connection);
    sweep_is_awaited_ = true;
  }
  // Deletes a removed connection once nothing of it is left in the CQ.
  void Bury(std::unique_ptr<PolledConnection> connection) {
    graveyard_.push_back(std::move(connection));
    sweep_is_awaited_ = true;
    WakeAnySleeper();  // a task may have done it, and a task does not poll
  }
  // Its Flush is called before this turn ends.
  void MarkDirty(PolledConnection* connection) {
    if (std::exchange(connection->dirty_, true)) return;
    dirty_.push_back(connection);
  }

  // Has the deliverer called for `call` soon, at the top of a turn.
  void MakeReady(Call* call);

  // Runs a callback of a user. Unless it is `quick`, other threads may take the
  // poller over meanwhile; false means that one still has it: the caller must
  // return without touching anything of the poller. True does not mean that
  // none had it: connections may have gone.
  template <typename Function>
  [[nodiscard]] bool RunCallback(bool quick, Function&& callback) {
    if (quick) {
      callback();
      WakeWaiters();
      return true;
    }
    OpenForCallback();
    {
      const CallbackMark mark(this);
      callback();
    }
    WakeWaiters();
    // Its last act may have been to enter (RunNow).
    if (turnstile_.HeldByMe()) return true;
    if (!turnstile_.TryEnter()) [[unlikely]]
      return false;
    // What this thread left for another driver comes before what it does now.
    RunTasks();
    return true;
  }

  // Whether callbacks wait for another thread: what is due goes through
  // MakeReady.
  bool callbacks_wait() const { return callbacks_wait_; }

  // Whether this thread has been the only one here for long.
  bool IsAlone() { return turnstile_.IsMine(); }

  MessagesBeingRead& messages_being_read() { return messages_being_read_; }

  CallTable& calls() { return calls_; }
  TransportCounters& counters() { return counters_; }
  TimerWheel& timers() { return timers_; }
  WallClock& wall_clock() { return wall_clock_; }
  ReceivePool& receive_pool() { return *receive_pool_; }
  ConnectionManager& connection_manager() { return *cm_; }
  CompletionQueue* cq() { return cq_.get(); }
  SharedReceiveQueue* srq() { return srq_.get(); }
  DeviceContext& context() { return *context_; }
  // Monotonic, read afresh.
  static int64_t NowNs();

  // Sets an event that a thread in Wait may sleep for.
  void SetEvent(rpc::Event& event) {
    event.Set();
    WakeWaiters();
  }

  // A year. Of a longer time nobody sees whether it was kept.
  static constexpr int64_t kLongestTimerNs =
      int64_t{365} * 24 * 3600 * 1'000'000'000;
  // Arms a timer, and sees to it that a sleeping thread wakes in time for it.
  void Schedule(Timer* timer, int64_t time_ns);

 private:
  friend class PollerMonitor;

  class EventListener final : public DeviceEventListener {
   public:
    explicit EventListener(Poller* poller) : poller_(poller) {}

   private:
    void OnDeviceEvent(const DeviceEvent& event) override {
      poller_->OnDeviceEvent(event);
    }
    Poller* const poller_;
  };
  // For the stack around a callback.
  class CallbackMark {
   public:
    explicit CallbackMark(const Poller* poller)
        : outer_(std::exchange(runs_callback_, poller)) {}
    ~CallbackMark() { runs_callback_ = outer_; }
    CallbackMark(const CallbackMark&) = delete;
    CallbackMark& operator=(const CallbackMark&) = delete;

   private:
    const Poller* const outer_;
  };
  struct Task {
    absl::AnyInvocable<void()> run;
    Task* next = nullptr;
  };

  Poller(std::shared_ptr<DeviceContext> context, CallDeliverer* deliverer,
         const Options& options);
  absl::Status Init(const Options& options);

  // One round: completions polled, tasks, completions handled, ready calls,
  // flushes, now and then timers and connection events.
  enum class TurnEnd {
    kIdle,  // nothing happened
    kBusy,
    kLost,  // another thread drives
  };
  TurnEnd Turn();
  TurnEnd TurnInLine();  // the same, in the caller
  // True where there are some to handle.
  bool PollCompletions();
  // False where the turnstile was lost.
  bool HandleCompletions();
  bool OnSwept();
  void OnDeviceEvent(const DeviceEvent& event);
  void HandleDeviceEvent(const DeviceEvent& event);
  void Fail(const absl::Status& why);
  void BreakConnections(const absl::Status& why, bool completions_lost);
  void HandleCompletion(const ibv_wc& wc);
  // Sets last_connection_ to the one with this QP. False: there is none.
  bool FindConnection(uint32_t qp_num);
  bool RunReadyCalls();
  void PushTask(absl::AnyInvocable<void()> task);
  bool RunTasks() {
    return ABSL_PREDICT_FALSE(tasks_.load(std::memory_order_relaxed) !=
                              nullptr) &&
           RunLeftTasks();
  }
  bool RunLeftTasks();
  void FlushDirty();
  bool LookAround();
  void LookAroundNextTurn();
  bool HandleEvents();
  // A keeper drives for others; a waiter for what makes its `done` true, which
  // another thread may do meanwhile.
  enum class Role { kKeeper, kWaiter };
  // Drives until `done`. False: another thread took over.
  template <typename Done>
  bool DriveUntil(Role role, Done done);
  // Work came without sleep: the time is over that began at `*idle_since_ns`.
  void FoundWork(int64_t* idle_since_ns);
  // For who looks again and again.
  static void CpuRelax() { __builtin_ia32_pause(); }
  template <typename Done>
  bool SpinOrSleep(Role role, Done done, int64_t* idle_since_ns);
  // As a keeper does: a turn, and on until somebody waits. False: another
  // thread took over.
  bool DriveForOthers();
  // Sleeps until something happens, unless `done` by then.
  template <typename Done>
  void Sleep(Role role, Done done);
  int SleepTimeoutMs();

  // What is left to the next driver.
  struct LeftBehind {
    bool callbacks;  // that are due
    size_t calls;    // that are under way
  };
  // Lets others in, with no task left undone.
  LeftBehind OpenForOthers() {
    LeftBehind left = OpenOnce();
    if (MustGoOn()) [[unlikely]]
      left = OpenAgain();
    return left;
  }
  LeftBehind OpenAgain();
  LeftBehind OpenOnce() {
    RunTasks();
    if (!dirty_.empty()) [[unlikely]]
      FlushDirty();
    const LeftBehind left = {
        .callbacks =
            next_completion_ < completion_count_ || ready_head_ != nullptr,
        .calls = calls_.live()};
    turnstile_.Release();
    return left;
  }
  // A task that was left while we held the turnstile is ours to see to: its
  // thread did not get in.
  bool MustGoOn() {
    return tasks_.load(std::memory_order_seq_cst) != nullptr &&
           turnstile_.TryEnter();
  }
  // Lets others in, and has the first of the waiters come. False: none waits.
  bool Leave();
  bool LeaveInLine();  // the same, in the caller
  // Lets others in while a callback of this thread's runs, which drives on when
  // it is over: nobody is called, but what is due does not wait for that.
  void OpenForCallback() {
    if (OpenForOthers().callbacks) WakeAnySleeper();
  }
  void CallForHelp(LeftBehind left);
  // Has the first of the threads that wait for their turn come. False: none.
  bool NudgeWaiter() {
    return waiter_count_.load(std::memory_order_seq_cst) > 0 &&
           NudgeFirstWaiter();
  }
  bool NudgeFirstWaiter();
  rpc::Event* FirstWaiter() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(waiters_mutex_);
  bool SomebodyWaits() const {
    return waiter_count_.load(std::memory_order_relaxed) > 0 && HasWaiter();
  }
  bool HasWaiter() const;
  bool IsLeftToGuests(LeftBehind left) const;
  void WaitForTurn(rpc::Event& event);
  void WakeSleepers();
  // There is work for whoever sleeps on the poller's events.
  void WakeAnySleeper() {
    if (sleepers_.load(std::memory_order_seq_cst) > 0) [[unlikely]]
      WakeSleepers();
  }

  // Tries for as long as another thread may hold it that only has something to
  // send.
  bool EnterSoon();
  void KeeperMain();
  // True where it was called back.
  bool ParkKeeper();
  // For the monitor: whether nobody looks after the poller, and the remedy.
  bool IsQuiet() const;
  PollerObservation Observe() const;
  bool IsNeglected(const PollerObservation& last) const;
  void SendKeeper();

  // Of this thread: the innermost one.
  static inline constinit thread_local const Poller* runs_callback_ = nullptr;

  const std::shared_ptr<DeviceContext> context_;
  CallDeliverer* const deliverer_;

  // In the order of creation.
  std::unique_ptr<CompletionChannel> channel_;
  std::unique_ptr<CompletionQueue> cq_;
  std::unique_ptr<SharedReceiveQueue> srq_;
  ReceivePool* receive_pool_ = nullptr;  // closed, not deleted
  std::unique_ptr<ConnectionManager> cm_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;

  PollerWatchdog watchdog_;
  Turnstile turnstile_;

  // The driver's.
  IdleSpin idle_spin_;
  static constexpr int kCompletionBatch = 32;
  ibv_wc completions_[kCompletionBatch];
  int next_completion_ = 0;
  int completion_count_ = 0;
  std::atomic<uint32_t> turns_{0};  // the monitor reads it
  int64_t last_look_ns_ = 0;
  int64_t next_event_look_ns_ = 0;
  TimerWheel timers_;
  WallClock wall_clock_;
  MessagesBeingRead messages_being_read_;
  CallTable calls_;
  TransportCounters counters_;
  absl::flat_hash_map<uint32_t, PolledConnection*> connections_;
  // The connection of the latest completion.
  static constexpr uint32_t kNoQp = UINT32_MAX;  // QPs' numbers have 24 bits
  uint32_t last_qp_num_ = kNoQp;
  PolledConnection* last_connection_ = nullptr;
  std::vector<PolledConnection*> dirty_;
  // Those of this sweep of the CQ, and of the one before.
  std::vector<PolledConnection*> notify_when_polled_;
  std::vector<PolledConnection*> notify_after_sweep_;
  std::vector<std::unique_ptr<PolledConnection>> graveyard_;
  std::vector<std::unique_ptr<PolledConnection>> dying_;
  std::vector<PolledConnection*> notify_sweeping_;  // being told
  std::vector<PolledConnection*> notify_when_unreserved_;
  int swept_ = 0;  // completions handled in this sweep
  // As a rule nobody waits for a sweep, and a driver that spins ends many.
  bool sweep_is_awaited_ = false;
  Call* ready_head_ = nullptr;
  Call* ready_tail_ = nullptr;
  size_t ready_count_ = 0;
  bool callbacks_wait_ = false;
  int64_t callbacks_wait_since_ns_ = 0;  // 0: none was seen to

  // Left by threads that found another one driving; newest first.
  std::atomic<Task*> tasks_{nullptr};
  // Threads in epoll_wait on behalf of this poller, and when they will wake.
  std::atomic<int> sleepers_{0};
  std::atomic<int> sleeping_waiters_{0};  // those of them that are no keepers
  std::atomic<int64_t> sleeping_until_ns_{0};

  // Threads in Wait that do not drive.
  std::atomic<int> waiter_count_{0};
  mutable absl::Mutex waiters_mutex_;
  std::vector<rpc::Event*> waiters_ ABSL_GUARDED_BY(waiters_mutex_);

  // Guests; one is the poller's own, until they are turned out.
  std::atomic<int> guests_{1};
  std::atomic<bool> guests_unwanted_{false};
  rpc::Event guests_gone_;
  // The last one was here not long ago.
  std::atomic<bool> guest_comes_back_{false};
  std::atomic<bool> guests_have_all_{false};  // Guest::kOfAllCalls

  std::atomic<int> coming_back_{0};  // threads; see ComesBack

  // Keepers.
  mutable absl::Mutex keepers_mutex_;
  std::vector<std::thread> keepers_ ABSL_GUARDED_BY(keepers_mutex_);
  int parked_keepers_ ABSL_GUARDED_BY(keepers_mutex_) = 0;
  int called_keepers_ ABSL_GUARDED_BY(keepers_mutex_) = 0;
  std::atomic<int> active_keepers_{0};  // not parked
  std::atomic<int> coming_keepers_{0};  // called, and not there yet
  std::atomic<bool> keepers_started_{false};
  std::atomic<bool> stopping_{false};

  // The driver's, and not of the hot path.
  uint32_t reserved_completions_ = 0;
  uint32_t completion_limit_ = 0;  // what the CQ can grow to
  absl::Status failure_;
  EventListener event_listener_{this};
};

}  // namespace rdma

#endif  // VERBENA_RDMA_TRANSPORT_POLLER_H_
