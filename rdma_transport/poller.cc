#include "rdma_transport/poller.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/memory/memory.h"
#include "rdma_transport/poller_monitor.h"
#include "rdma_transport/verbs/verbs_error.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// How often a busy driver looks at what the CQ does not show: the clock every
// so many turns, timers when the clock says so, and the device's and the
// connection manager's events, which on hardware take a system call each, as
// often only where the last look found some.
constexpr uint32_t kTurnsPerClock = 64;
// After so many turns without work in a row, some 100 ns, a driver pauses
// between turns: what it waits for is being made, maybe by the other thread of
// the same core, and is written sooner where its line is looked at less often.
constexpr uint32_t kTurnsToRelax = 8;
constexpr int64_t kLookAroundNs = 50'000;
constexpr int64_t kQuietEventsNs = 500'000;
// A thousand clients that reconnect at once do not hold up the others' calls:
// each event may create a QP, which takes a device up to a millisecond.
constexpr int kCmEventsPerLook = 8;
// Calling another thread for callbacks that are due takes tens of microseconds,
// and a CPU that may be this one's.
constexpr int64_t kCallbacksMayWaitNs = 200'000;
constexpr int64_t kLetOthersWakeNs = 20'000;
constexpr int64_t kDrainNs = 5'000'000'000;

void LetOthersWake() {
  const timespec pause = {0, kLetOthersWakeNs};
  nanosleep(&pause, nullptr);
}

absl::Status AddToEpoll(int epoll_fd, int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
    return VerbsError("epoll_ctl", errno);
  }
  return absl::OkStatus();
}

}  // namespace

int64_t Poller::NowNs() { return ReadClockNs(CLOCK_MONOTONIC); }

Poller::Poller(std::shared_ptr<DeviceContext> context, CallDeliverer* deliverer,
               const Options& options)
    : context_(std::move(context)),
      deliverer_(deliverer),
      idle_spin_(options.spin, std::max(options.spin, options.longest_spin)),
      timers_(NowNs()),
      calls_(options.number) {}

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create(
    std::shared_ptr<DeviceContext> context, CallDeliverer* deliverer,
    const Options& options) {
  std::unique_ptr<Poller> poller =
      absl::WrapUnique(new Poller(std::move(context), deliverer, options));
  if (absl::Status status = poller->Init(options); !status.ok()) return status;
  return poller;
}

absl::Status Poller::Init(const Options& options) {
  Turnstile::Prepare();
  Device* const device = context_->device();
  const ibv_device_attr& limits = device->attributes();

  auto channel = CompletionChannel::Create(device);
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);

  auto cq = CompletionQueue::Create(channel_.get(), device,
                                    std::min(options.cq_depth, limits.max_cqe));
  if (!cq.ok()) return cq.status();
  cq_ = *std::move(cq);

  const uint32_t srq_depth = std::min<uint32_t>(
      options.srq_depth, static_cast<uint32_t>(limits.max_srq_wr));
  auto srq = SharedReceiveQueue::Create(context_->pd(), srq_depth, 1);
  if (!srq.ok()) return srq.status();
  srq_ = *std::move(srq);

  auto pool = ReceivePool::Create(
      context_->pd(), srq_.get(), context_,
      {options.receive_buffer_bytes, options.receive_budget_bytes, srq_depth});
  if (!pool.ok()) return pool.status();
  receive_pool_ = *pool;
  // A receive has one completion as well.
  reserved_completions_ = std::min(srq_depth, receive_pool_->capacity());
  completion_limit_ = static_cast<uint32_t>(limits.max_cqe);

  auto cm = device->CreateConnectionManager();
  if (!cm.ok()) return cm.status();
  cm_ = *std::move(cm);

  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) return VerbsError("epoll_create1", errno);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return VerbsError("eventfd", errno);
  for (const int fd :
       {channel_->fd(), cm_->fd(), context_->event_fd(), wake_fd_}) {
    if (absl::Status status = AddToEpoll(epoll_fd_, fd); !status.ok()) {
      return status;
    }
  }
  if (absl::Status status = watchdog_.Init(); !status.ok()) return status;
  if (absl::Status status = PollerMonitor::Get().Prepare(watchdog_);
      !status.ok()) {
    return status;
  }
  context_->AddListener(&event_listener_);
  return absl::OkStatus();
}

Poller::~Poller() {
  StopKeepers();
  context_->RemoveListener(&event_listener_);
  for (Task* task = tasks_.exchange(nullptr); task != nullptr;) {
    delete std::exchange(task, task->next);
  }
  if (wake_fd_ >= 0) close(wake_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
  cm_.reset();
  srq_.reset();
  if (receive_pool_ != nullptr) receive_pool_->Close();
}

// ---- Work from any thread.

void Poller::Run(absl::AnyInvocable<void()> task) {
  if (RunNow(task)) return;
  PushTask(std::move(task));
  // Either the driver sees the task when it releases, or we get in.
  RunNow([] {});
}

void Poller::RunElsewhere(absl::AnyInvocable<void()> task) {
  PushTask(std::move(task));
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    WakeSleepers();
  } else {
    RunNow([] {});
  }
}

void Poller::PushTask(absl::AnyInvocable<void()> task) {
  auto* const node = new Task{std::move(task)};
  node->next = tasks_.load(std::memory_order_relaxed);
  while (!tasks_.compare_exchange_weak(node->next, node,
                                       std::memory_order_seq_cst)) {
  }
}

ABSL_ATTRIBUTE_NOINLINE bool Poller::RunLeftTasks() {
  Task* newest = tasks_.exchange(nullptr, std::memory_order_acquire);
  Task* oldest = nullptr;
  while (newest != nullptr) {
    Task* const next = newest->next;
    newest->next = oldest;
    oldest = std::exchange(newest, next);
  }
  // Tasks run no callbacks, so the turnstile stays ours.
  while (oldest != nullptr) {
    oldest->run();
    delete std::exchange(oldest, oldest->next);
  }
  WakeWaiters();
  return true;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Poller::LeaveInLine() {
  const LeftBehind left = OpenForOthers();
  if (NudgeWaiter()) return true;
  // Without any, the monitor's look is soon enough.
  if (left.callbacks || left.calls != 0) CallForHelp(left);
  return false;
}

bool Poller::Leave() { return LeaveInLine(); }

ABSL_ATTRIBUTE_NOINLINE void Poller::CallForHelp(LeftBehind left) {
  if (IsLeftToGuests(left)) return;
  if (!left.callbacks && coming_back_.load(std::memory_order_relaxed) > 0)
    return;
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    // They wake with what comes from the peer; callbacks that are due already
    // would wait for that.
    if (left.callbacks) WakeSleepers();
  } else if (active_keepers_.load(std::memory_order_seq_cst) == 0) {
    SendKeeper();
  }
}

ABSL_ATTRIBUTE_NOINLINE Poller::LeftBehind Poller::OpenAgain() {
  LeftBehind left;
  do {
    left = OpenOnce();
  } while (MustGoOn());
  return left;
}

// ---- Driving.

void Poller::Wait(rpc::Event& event) {
  // RunNow may have made this thread the driver.
  bool drives = turnstile_.HeldByMe();
  while (drives || !event.is_set()) {
    if (drives || turnstile_.TryEnter()) {
      drives = false;
      if (DriveUntil(Role::kWaiter, [&event] { return event.is_set(); })) {
        LeaveInLine();
      }
    } else {
      WaitForTurn(event);
    }
  }
}

void Poller::WaitAsGuest(rpc::Event& event, Guest guest) {
  guests_.fetch_add(1, std::memory_order_seq_cst);
  const auto done = [this, &event] {
    return event.is_set() || guests_unwanted_.load(std::memory_order_seq_cst);
  };
  while (!done()) {
    if (turnstile_.TryEnter()) {
      guest_comes_back_.store(true, std::memory_order_relaxed);
      guests_have_all_.store(guest == Guest::kOfAllCalls,
                             std::memory_order_relaxed);
      if (DriveUntil(Role::kWaiter, done)) Leave();
    } else {
      WaitForTurn(event);
    }
  }
  if (guests_.fetch_sub(1, std::memory_order_seq_cst) == 1) guests_gone_.Set();
}

void Poller::DriveWithoutCallbacks(absl::FunctionRef<bool()> done) {
  if (!EnterSoon()) return;
  callbacks_wait_ = true;
  int64_t idle_since_ns = 0;
  uint32_t idle_turns = 0;
  bool others_wanted = false;
  do {
    const TurnEnd end = Turn();
    assert(end != TurnEnd::kLost);  // quick callbacks do not open it
    if (end == TurnEnd::kBusy) {
      idle_turns = 0;
      idle_since_ns = 0;
    } else if (++idle_turns % kTurnsPerClock == 0) {
      const int64_t now_ns = NowNs();
      if (idle_since_ns == 0) idle_since_ns = now_ns;
      others_wanted = now_ns - idle_since_ns >= idle_spin_.limit_ns();
    }
    if (ready_head_ != nullptr) {
      const int64_t now_ns = NowNs();
      if (callbacks_wait_since_ns_ == 0) callbacks_wait_since_ns_ = now_ns;
      others_wanted |= now_ns - callbacks_wait_since_ns_ >= kCallbacksMayWaitNs;
    }
  } while (!others_wanted && !done());
  callbacks_wait_ = false;
  const bool callbacks_are_due = OpenForOthers().callbacks;
  if ((others_wanted || callbacks_are_due) && NudgeWaiter()) return;
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    if (others_wanted || callbacks_are_due) WakeSleepers();
  } else if (others_wanted) {
    SendKeeper();
  }
}

template <typename Done>
inline bool Poller::DriveUntil(Role role, Done done) {
  int64_t idle_since_ns = 0;
  uint32_t idle_turns = 0;
  while (!done()) {
    switch (TurnInLine()) {
      case TurnEnd::kLost:
        return false;
      case TurnEnd::kBusy:
        idle_turns = 0;
        if (idle_since_ns != 0) FoundWork(&idle_since_ns);
        break;
      case TurnEnd::kIdle:
        if (idle_turns >= kTurnsToRelax) CpuRelax();
        if (++idle_turns % kTurnsPerClock == 0 &&
            !SpinOrSleep(role, done, &idle_since_ns)) {
          return false;
        }
    }
  }
  return true;
}

ABSL_ATTRIBUTE_NOINLINE void Poller::FoundWork(int64_t* idle_since_ns) {
  if (idle_spin_.listens()) idle_spin_.OnFound(NowNs() - *idle_since_ns);
  *idle_since_ns = 0;
}

// After some turns without work. False: the turnstile was lost.
template <typename Done>
ABSL_ATTRIBUTE_NOINLINE bool Poller::SpinOrSleep(Role role, Done done,
                                                 int64_t* idle_since_ns) {
  const int64_t now_ns = NowNs();
  if (*idle_since_ns == 0) *idle_since_ns = now_ns;
  if (now_ns - *idle_since_ns < idle_spin_.limit_ns()) return true;
  if (context_->device()->is_at_work(cq_->get())) {
    *idle_since_ns = 0;
    return true;
  }
  Sleep(role, done);
  if (!turnstile_.HeldByMe()) return false;
  idle_spin_.OnWoken(NowNs() - *idle_since_ns);
  *idle_since_ns = 0;
  return true;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline Poller::TurnEnd Poller::TurnInLine() {
  bool busy = PollCompletions();
  // What was asked for before a peer sent is done before that is looked at: a
  // call that was cancelled is not answered any more.
  busy |= RunTasks();
  if (!HandleCompletions()) return TurnEnd::kLost;
  if (ready_head_ != nullptr && !callbacks_wait_) {
    busy = true;
    if (!RunReadyCalls()) return TurnEnd::kLost;
  }
  // Nothing of what follows runs a callback.
  if (!dirty_.empty()) [[unlikely]]
    FlushDirty();
  receive_pool_->Replenish();
  const uint32_t turns = turns_.load(std::memory_order_relaxed) + 1;
  turns_.store(turns, std::memory_order_relaxed);
  if (turns % kTurnsPerClock == 0) [[unlikely]]
    busy |= LookAround();
  assert(turnstile_.HeldByMe());
  return busy ? TurnEnd::kBusy : TurnEnd::kIdle;
}

Poller::TurnEnd Poller::Turn() { return TurnInLine(); }

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Poller::PollCompletions() {
  if (next_completion_ != completion_count_) [[unlikely]]
    return true;
  next_completion_ = completion_count_ = 0;
  const int count = ibv_poll_cq(cq_->get(), kCompletionBatch, completions_);
  if (count <= 0) {
    if (count < 0) Fail(absl::UnavailableError("ibv_poll_cq failed"));
    swept_ = 0;
    return sweep_is_awaited_ && OnSwept();
  }
  completion_count_ = count;
  return true;
}

// The rest of a batch is the poller's, not this thread's: a callback may end in
// another thread's driving on from here.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool Poller::HandleCompletions() {
  if (next_completion_ == completion_count_) return true;
  do {
    HandleCompletion(completions_[next_completion_++]);
    if (!turnstile_.HeldByMe()) [[unlikely]]
      return false;
  } while (next_completion_ < completion_count_);
  // A callback's thread may have come here itself, for this very batch.
  if (completion_count_ == 0) [[unlikely]]
    return true;
  const int count = std::exchange(completion_count_, 0);
  next_completion_ = 0;
  swept_ += count;
  if (count < kCompletionBatch || swept_ >= cq_->depth()) {
    swept_ = 0;
    if (sweep_is_awaited_) OnSwept();
  }
  return true;
}

// A sweep ends where the CQ was seen empty, or after as many completions as it
// holds. What was asked for during one sweep is due at the end of the next:
// that one began later, and so saw all that was in the CQ then. True where
// something waits for the next.
ABSL_ATTRIBUTE_NOINLINE bool Poller::OnSwept() {
  sweep_is_awaited_ = false;
  dying_.clear();
  dying_.swap(graveyard_);
  if (!notify_after_sweep_.empty() || !notify_when_polled_.empty()) {
    notify_sweeping_.swap(notify_after_sweep_);
    notify_after_sweep_.swap(notify_when_polled_);
    for (size_t i = 0; i < notify_sweeping_.size(); ++i) {
      if (notify_sweeping_[i] != nullptr) notify_sweeping_[i]->OnPolled();
    }
    notify_sweeping_.clear();
  }
  const bool next_is_awaited = !dying_.empty() || !notify_after_sweep_.empty();
  // What was asked for meanwhile included.
  sweep_is_awaited_ |= next_is_awaited;
  return next_is_awaited;
}

ABSL_ATTRIBUTE_NOINLINE bool Poller::FindConnection(uint32_t qp_num) {
  const auto found = connections_.find(qp_num);
  if (found == connections_.end()) return false;
  last_qp_num_ = qp_num;
  last_connection_ = found->second;
  return true;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Poller::HandleCompletion(
    const ibv_wc& wc) {
  // Receives carry a buffer's address, which is even; sends an odd number.
  const bool is_send = (wc.wr_id & 1) != 0;
  if (ABSL_PREDICT_FALSE(wc.qp_num != last_qp_num_) &&
      !FindConnection(wc.qp_num)) {
    // The QP is gone; what it received belongs to nobody.
    if (!is_send) receive_pool_->Discard(wc.wr_id);
    return;
  }
  if (is_send) [[unlikely]] {
    last_connection_->OnSendCompletion(wc);
  } else if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
    receive_pool_->Discard(wc.wr_id);
    last_connection_->OnReceiveError(wc);
  } else {
    last_connection_->OnReceive(wc);
  }
}

// What callbacks make ready waits for the next turn: a callback that starts
// another call each time keeps nothing else from running.
ABSL_ATTRIBUTE_NOINLINE bool Poller::RunReadyCalls() {
  for (size_t left = ready_count_; left > 0 && ready_head_ != nullptr; --left) {
    Call* const call = ready_head_;
    --ready_count_;
    ready_head_ = call->next_ready;
    if (ready_head_ == nullptr) {
      ready_tail_ = nullptr;
      callbacks_wait_since_ns_ = 0;
    }
    call->next_ready = nullptr;
    call->queued = false;
    deliverer_->DeliverNext(*call);
    if (!turnstile_.HeldByMe()) return false;
  }
  return true;
}

void Poller::MakeReady(Call* call) {
  if (std::exchange(call->queued, true)) return;
  call->next_ready = nullptr;
  (ready_tail_ == nullptr ? ready_head_ : ready_tail_->next_ready) = call;
  ready_tail_ = call;
  ++ready_count_;
}

ABSL_ATTRIBUTE_NOINLINE void Poller::FlushDirty() {
  // Flushing may mark further connections, or the same one again.
  for (size_t i = 0; i < dirty_.size(); ++i) {
    PolledConnection* const connection = dirty_[i];
    if (connection == nullptr) continue;
    connection->dirty_ = false;
    connection->Flush();
  }
  dirty_.clear();
}

bool Poller::LookAround() {
  const int64_t now_ns = NowNs();
  if (now_ns - last_look_ns_ < kLookAroundNs) return false;
  last_look_ns_ = now_ns;
  watchdog_.Push(now_ns);
  timers_.Advance(now_ns);
  if (now_ns < next_event_look_ns_) return false;
  const bool any = HandleEvents();
  next_event_look_ns_ = any ? 0 : now_ns + kQuietEventsNs;
  return any;
}

bool Poller::HandleEvents() {
  bool any = context_->HandleEvents();
  for (int i = 0; i < kCmEventsPerLook; ++i) {
    std::optional<CmEvent> event = cm_->GetEvent();
    if (!event.has_value()) break;
    any = true;
    CmId* const target =
        event->listener != nullptr ? event->listener : event->id;
    if (target == nullptr || target->context == nullptr) continue;
    static_cast<CmEventHandler*>(target->context)->OnCmEvent(*event);
  }
  return any;
}

void Poller::AddConnection(uint32_t qp_num, PolledConnection* connection) {
  connections_[qp_num] = connection;
}

void Poller::RemoveConnection(uint32_t qp_num) {
  const auto found = connections_.find(qp_num);
  if (found == connections_.end()) return;
  for (std::vector<PolledConnection*>* list :
       {&dirty_, &notify_when_polled_, &notify_after_sweep_, &notify_sweeping_,
        &notify_when_unreserved_}) {
    std::replace(list->begin(), list->end(), found->second,
                 static_cast<PolledConnection*>(nullptr));
  }
  connections_.erase(found);
  last_qp_num_ = kNoQp;
}

// ---- Sleeping.

void Poller::Schedule(Timer* timer, int64_t time_ns) {
  timers_.Schedule(timer, time_ns);
  if (sleepers_.load(std::memory_order_seq_cst) > 0 &&
      time_ns < sleeping_until_ns_.load(std::memory_order_relaxed)) {
    WakeSleepers();
  }
}

void Poller::WakeSleepers() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      write(wake_fd_, &one, sizeof(one));  // full: they are woken already
}

int Poller::SleepTimeoutMs() {
  const int64_t next_ns = timers_.NextAdvanceNs();
  // Where several threads sleep, the last one to wake is what counts: it may be
  // the only one left when a timer is due.
  const bool alone = sleepers_.load(std::memory_order_relaxed) == 0;
  sleeping_until_ns_.store(
      alone ? next_ns
            : std::max(next_ns,
                       sleeping_until_ns_.load(std::memory_order_relaxed)),
      std::memory_order_relaxed);
  if (next_ns == TimerWheel::kNever) return -1;
  const int64_t left_ns = std::max<int64_t>(next_ns - NowNs(), 0);
  return static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, 60'000));
}

void Poller::LookAroundNextTurn() {
  turns_.store(turns_.load(std::memory_order_relaxed) | (kTurnsPerClock - 1),
               std::memory_order_relaxed);
  last_look_ns_ = 0;
  next_event_look_ns_ = 0;
}

template <typename Done>
void Poller::Sleep(Role role, Done done) {
  channel_->DrainEvents();
  // A wake-up that another sleeper has not seen yet stays for it.
  bool wake_pending = false;
  if (stopping_.load(std::memory_order_seq_cst)) {
    wake_pending = true;
  } else if (sleepers_.load(std::memory_order_seq_cst) == 0) {
    uint64_t wakes;
    [[maybe_unused]] const ssize_t drained =
        read(wake_fd_, &wakes, sizeof(wakes));
  } else {
    pollfd wake = {wake_fd_, POLLIN, 0};
    wake_pending = poll(&wake, 1, 0) > 0;
  }
  if (ibv_req_notify_cq(cq_->get(), 0) != 0) return;
  // What completed before the arming raises no event: ibv_req_notify_cq(3).
  LookAroundNextTurn();
  if (Turn() != TurnEnd::kIdle) return;

  const int timeout_ms = SleepTimeoutMs();
  const int waiters = role == Role::kWaiter ? 1 : 0;
  sleeping_waiters_.fetch_add(waiters, std::memory_order_seq_cst);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  const bool work_left = OpenForOthers().callbacks;
  // From here on whoever makes `done` true sees a sleeper and wakes it.
  if (!work_left && !done() && !stopping_.load(std::memory_order_seq_cst)) {
    if (wake_pending) {
      // epoll_wait would return at once until that sleeper has had a CPU: this
      // one's, where both are real-time threads that are bound to it.
      LetOthersWake();
    } else {
      epoll_event events[4];
      epoll_wait(epoll_fd_, events, 4, timeout_ms);
      // Who waits for what came need not hear of it from another thread.
      if (role == Role::kKeeper &&
          sleeping_waiters_.load(std::memory_order_seq_cst) > 0) {
        LetOthersWake();
      }
    }
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  sleeping_waiters_.fetch_sub(waiters, std::memory_order_seq_cst);
  // Whatever this thread, or another one, does next may block.
  watchdog_.Push(NowNs());
  if (turnstile_.TryEnter()) LookAroundNextTurn();
}

// A thread that waits for its answer gets it without a hand-over where it
// drives itself.
bool Poller::DriveForOthers() {
  // Whoever waits may get no CPU just now: something is done in any case.
  if (Turn() == TurnEnd::kLost) return false;
  return DriveUntil(Role::kKeeper, [this] {
    return stopping_.load(std::memory_order_relaxed) || SomebodyWaits();
  });
}

void Poller::Drain() {
  StopKeepers();
  // A device that does not flush would keep us here.
  const int64_t give_up_ns = NowNs() + kDrainNs;
  while (!turnstile_.TryEnter()) {
    if (NowNs() > give_up_ns) return;
    std::this_thread::yield();
  }
  const bool drives = DriveUntil(Role::kWaiter, [this, give_up_ns] {
    return (connections_.empty() && graveyard_.empty() && dying_.empty() &&
            ready_head_ == nullptr &&
            tasks_.load(std::memory_order_relaxed) == nullptr) ||
           NowNs() > give_up_ns;
  });
  if (!connections_.empty()) {
    rpc::Log(rpc::LogLevel::kError,
             "a poller ends with connections that do not flush");
  }
  if (drives) turnstile_.Release();
}

}  // namespace rdma
