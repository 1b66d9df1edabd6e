#include "rdma_transport/endpoint.h"

#include <algorithm>
#include <cassert>
#include <thread>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "rdma_transport/frame.h"
#include "rdma_transport/growing_message.h"
#include "rdma_transport/wall_clock.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

// gRPC's "Connection Backoff" document.
constexpr double kBackoffMultiplier = 1.6;
constexpr double kBackoffJitter = 0.2;
// So many looks without a call make up the idle timeout.
constexpr int kIdleChecks = 4;

constexpr char kShutDown[] = "the channel is shut down";

std::string NameOf(const HostPort& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return absl::StrCat("rdma://", v6 ? "[" : "", address.host, v6 ? "]" : "",
                      ":", address.port);
}

}  // namespace

Endpoint::Endpoint(std::shared_ptr<ClientPoller> poller, HostPort address,
                   const rpc::TransportOptions& options)
    : poller_(std::move(poller)),
      address_(std::move(address)),
      name_(NameOf(address_)),
      options_(options),
      backoff_(options.initial_backoff) {}

Endpoint::~Endpoint() = default;

uint32_t Endpoint::RegisterMethod(std::string_view path) {
  absl::MutexLock lock(&methods_mutex_);
  const auto [found, inserted] = method_numbers_.try_emplace(
      std::string(path), static_cast<uint32_t>(method_paths_.size()));
  if (inserted) method_paths_.emplace_back(path);
  return found->second;
}

// The driver's own list saves the lock on the way of a call.
std::string_view Endpoint::PathOf(uint32_t method) {
  if (method >= paths_.size()) {
    absl::MutexLock lock(&methods_mutex_);
    paths_.assign(method_paths_.begin(), method_paths_.end());
  }
  return paths_[method];
}

// ---- Calls.

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void Endpoint::Start(
    Call& call, const rpc::CallOptions& options, rpc::OutgoingFrame& frame,
    rpc::CallSink* sink) {
  call.owner = this;
  call.sink = sink;
  call.is_client = true;
  call.quick_sink = options.quick;
  call.wait_for_ready = options.wait_for_ready;
  call.method_index = options.method;
  call.deadline = options.deadline;
  if (ABSL_PREDICT_FALSE(options.next_wait == rpc::NextWait::kAsGuest)) {
    poller_->poller->calls().SetForGuests(&call);
  }
  if (ABSL_PREDICT_FALSE(options.deadline != absl::InfiniteFuture()) &&
      !SetDeadline(call)) {
    return;
  }
  ++calls_opened_;
  if (ABSL_PREDICT_TRUE(connection_ != nullptr && connection_->up() &&
                        connection_->HasFreeSlot())) {
    // A call that waits has the next slot (SendPending).
    assert(pending_.empty() && !shut_down_);
    connection_->OpenCallInLine(call, frame);
  } else {
    StartLater(call, frame);
  }
}

// Flat: Poller::RunNow, of which this is the most part, would be a function.
[[gnu::flatten]] rpc::CallHandle Endpoint::StartCall(
    const rpc::CallOptions& options, rpc::OutgoingFrame&& frame,
    rpc::CallSink* sink) {
  Poller& poller = *poller_->poller;
  rpc::CallHandle handle;
  const auto start = [&] {
    Call* const call = poller.calls().Create();
    handle = call->handle;
    // Callbacks run in turns of a driver, of which there is none in here; and
    // what runs one cannot go meanwhile, whatever the call's end destroys.
    if (poller.RunsCallbackHere() && sink->OnStarted(handle)) handle = {};
    Start(*call, options, frame, sink);
    // Taken over, also where the call ended before it was sent.
    if (!frame.message.empty()) frame.message.clear();
    if (!frame.attachment.empty()) frame.attachment.clear();
  };
  if (poller.RunNow(start, options.next_wait == rpc::NextWait::kAtOnce))
      [[likely]] {
    return handle;
  }
  return StartElsewhere(options, frame, sink);
}

// On the thread that drives.
ABSL_ATTRIBUTE_NOINLINE rpc::CallHandle Endpoint::StartElsewhere(
    const rpc::CallOptions& options, rpc::OutgoingFrame& frame,
    rpc::CallSink* sink) {
  const rpc::CallHandle handle = CallTable::NewAlias();
  poller_->poller->Run(
      [self = shared_from_this(), options, sink, handle,
       owned = std::make_unique<OwnedFrame>(std::move(frame))] {
        Call* const call = self->poller_->poller->calls().Create(handle);
        self->StartWhereDriven(*call, options, owned->get(), sink);
      });
  return handle;
}

void Endpoint::StartWhereDriven(Call& call, const rpc::CallOptions& options,
                                rpc::OutgoingFrame& frame,
                                rpc::CallSink* sink) {
  Start(call, options, frame, sink);
}

// False: it has passed.
ABSL_ATTRIBUTE_NOINLINE bool Endpoint::SetDeadline(Call& call) {
  const int64_t left_ns = NsUntil(call.deadline);
  if (left_ns == 0) {
    poller_->delivery.Close(
        call, {shut_down_ ? absl::CancelledError(kShutDown)
                          : absl::DeadlineExceededError("Deadline Exceeded"),
               false});
    return false;
  }
  call.timeout_us = TimeoutUs(left_ns);
  poller_->poller->Schedule(
      &call, Poller::NowNs() + std::min(left_ns, Poller::kLongestTimerNs));
  return true;
}

// When there is a connection, if that is to be waited for.
ABSL_ATTRIBUTE_NOINLINE void Endpoint::StartLater(Call& call,
                                                  rpc::OutgoingFrame& frame) {
  if (shut_down_) {
    poller_->delivery.Close(call, {absl::CancelledError(kShutDown), false});
    return;
  }
  const bool failing =
      state_.load() == rpc::ConnectivityState::kTransientFailure;
  if (failing && call.wait_for_ready != rpc::WaitForReady::kYes) {
    poller_->delivery.Close(call, {last_failure_, false});
    return;
  }
  pending_.push_back({&call, std::make_unique<OwnedFrame>(std::move(frame))});
  AwaitSlots();
  if (connection_ == nullptr && !failing) StartConnecting();
}

bool Endpoint::Send(rpc::CallHandle handle, rpc::OutgoingFrame&& frame) {
  bool sent = false;
  if (poller_->poller->RunNow([&] { sent = poller_->Send(handle, frame); })) {
    return sent;
  }
  poller_->poller->Run(
      [self = shared_from_this(), handle,
       owned = std::make_unique<OwnedFrame>(std::move(frame))] {
        self->poller_->Send(handle, owned->get());
      });
  return false;
}

void Endpoint::Release(rpc::CallHandle handle, uint64_t window_bytes,
                       bool drained) {
  poller_->poller->Run(
      [self = shared_from_this(), handle, window_bytes, drained] {
        self->poller_->Release(handle, window_bytes, drained);
      });
}

void Endpoint::Cancel(rpc::CallHandle handle, absl::Status reason) {
  poller_->poller->Run(
      [self = shared_from_this(), handle, reason = std::move(reason)] {
        if (Call* const call = self->poller_->poller->calls().Find(handle)) {
          self->CancelCall(*call, reason);
        }
      });
}

void Endpoint::OnCallDeadline(Call& call) {
  CancelCall(call, absl::DeadlineExceededError("Deadline Exceeded"));
}

void Endpoint::CancelCall(Call& call, const absl::Status& reason) {
  if (call.connection != nullptr) {
    call.connection->ResetCall(call, reason);
    return;
  }
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(),
                                [&call](const PendingCall& pending) {
                                  return pending.call == &call;
                                }),
                 pending_.end());
  poller_->delivery.Close(call, {reason, false});
}

// A call that cannot be sent frees its slot at once, which leads here again.
void Endpoint::SendPending() {
  if (std::exchange(sending_pending_, true)) return;
  while (!pending_.empty() && connection_ != nullptr && connection_->up() &&
         connection_->HasFreeSlot()) {
    PendingCall pending = std::move(pending_.front());
    pending_.pop_front();
    Call& call = *pending.call;
    if (call.timeout_us != 0)
      call.timeout_us = TimeoutUs(NsUntil(call.deadline));
    connection_->OpenCall(call, pending.frame->get());
  }
  sending_pending_ = false;
  AwaitSlots();
}

void Endpoint::AwaitSlots() {
  if (!pending_.empty() && connection_ != nullptr && connection_->up()) {
    connection_->TellOfGoneCalls();
  }
}

// Fails those that do not wait for a connection.
void Endpoint::FailPending(const absl::Status& why) {
  std::deque<PendingCall> waiting;
  for (PendingCall& pending : std::exchange(pending_, {})) {
    if (pending.call->wait_for_ready == rpc::WaitForReady::kYes &&
        !shut_down_) {
      waiting.push_back(std::move(pending));
    } else {
      poller_->delivery.Close(*pending.call, {why, false});
    }
  }
  pending_ = std::move(waiting);
}

// ---- Connecting.

void Endpoint::StartConnecting() {
  if (connection_ != nullptr || resolving_ || shut_down_) return;
  SetState(rpc::ConnectivityState::kConnecting);
  attempt_started_ = absl::Now();
  next_candidate_ = 0;
  const absl::StatusOr<SocketAddress> numeric =
      SocketAddress::FromNumeric(address_.host, address_.port);
  if (numeric.ok()) {
    candidates_ = {*numeric};
    ConnectNext();
    return;
  }
  // A resolver may take long: it gets a thread of its own.
  resolving_ = true;
  std::thread([self = shared_from_this()] {
    absl::StatusOr<std::vector<SocketAddress>> resolved =
        ResolveAddress(self->address_);
    self->poller_->poller->Run(
        [self, resolved = std::move(resolved)] { self->OnResolved(resolved); });
  }).detach();
}

void Endpoint::OnResolved(
    absl::StatusOr<std::vector<SocketAddress>> addresses) {
  resolving_ = false;
  if (shut_down_) return;
  if (!addresses.ok()) {
    last_failure_ = absl::UnavailableError(
        absl::StrCat("cannot connect to ", name_, ": ",
                     std::string(addresses.status().message())));
    ConnectingFailed();
    return;
  }
  candidates_ = *std::move(addresses);
  ConnectNext();
}

void Endpoint::ConnectNext() {
  while (next_candidate_ < candidates_.size()) {
    const absl::StatusOr<Connection*> connection =
        Connection::Connect(poller_->poller.get(), &poller_->delivery, this,
                            candidates_[next_candidate_++], options_);
    if (connection.ok()) {
      connection_ = *connection;
      return;
    }
    last_failure_ = absl::UnavailableError(
        absl::StrCat("cannot connect to ", name_, ": ",
                     std::string(connection.status().message())));
  }
  ConnectingFailed();
}

void Endpoint::ConnectingFailed() {
  rpc::Log(rpc::LogLevel::kInfo, std::string(last_failure_.message()));
  SetState(rpc::ConnectivityState::kTransientFailure);
  const absl::Time next_attempt = attempt_started_ + NextBackoff();
  const absl::Duration wait =
      std::max(next_attempt - absl::Now(), absl::Milliseconds(1));
  poller_->poller->Schedule(&retry_timer_,
                            Poller::NowNs() + absl::ToInt64Nanoseconds(wait));
  FailPending(last_failure_);
}

absl::Duration Endpoint::NextBackoff() {
  const absl::Duration current = std::max(backoff_, options_.min_backoff);
  backoff_ = std::min(backoff_ * kBackoffMultiplier, options_.max_backoff);
  return current *
         absl::Uniform(random_, 1 - kBackoffJitter, 1 + kBackoffJitter);
}

void Endpoint::OnBackoffOver() {
  if (connection_ != nullptr || shut_down_) return;
  if (pending_.empty()) {
    SetState(rpc::ConnectivityState::kIdle);
  } else {
    StartConnecting();
  }
}

void Endpoint::ResetBackoff() {
  poller_->poller->Run([self = shared_from_this()] {
    self->backoff_ = self->options_.initial_backoff;
    self->attempt_started_ = absl::InfinitePast();  // the next one follows
    if (self->state_.load() != rpc::ConnectivityState::kTransientFailure) {
      return;
    }
    self->poller_->poller->timers().Cancel(&self->retry_timer_);
    self->OnBackoffOver();
  });
}

void Endpoint::OnConnectionUp(Connection& connection) {
  backoff_ = options_.initial_backoff;
  {
    absl::MutexLock lock(&state_mutex_);
    peer_ = connection.peer();
  }
  SetState(rpc::ConnectivityState::kReady);
  idle_checks_ = 0;
  ScheduleIdleCheck();
  SendPending();
}

void Endpoint::OnConnectionDown(Connection& connection, const absl::Status& why,
                                bool was_up) {
  if (&connection != connection_) {
    leaving_.erase(std::remove(leaving_.begin(), leaving_.end(), &connection),
                   leaving_.end());
    return;
  }
  connection_ = nullptr;
  poller_->poller->timers().Cancel(&idle_timer_);
  if (shut_down_) return;
  if (was_up) {
    SetState(rpc::ConnectivityState::kIdle);
    if (!pending_.empty()) StartConnecting();
    return;
  }
  last_failure_ = absl::UnavailableError(absl::StrCat(
      "cannot connect to ", name_, ": ", std::string(why.message())));
  ConnectNext();
}

// The server drains: running calls finish there, new ones go elsewhere.
void Endpoint::OnGoAway(Connection& connection) {
  if (&connection != connection_) return;
  leaving_.push_back(std::exchange(connection_, nullptr));
  connection.TellOfGoneCalls();
  poller_->poller->timers().Cancel(&idle_timer_);
  SetState(rpc::ConnectivityState::kIdle);
  if (connection.live_calls() == 0) OnCallGone(connection);
  if (!pending_.empty()) StartConnecting();
}

void Endpoint::OnCallGone(Connection& connection) {
  if (&connection == connection_) {
    if (!pending_.empty()) SendPending();  // there is a free slot
  } else if (connection.live_calls() == 0) {
    connection.Close(absl::UnavailableError("the server is shutting down"));
  }
}

// Looking now and then whether there were calls spares each call a timer.
void Endpoint::ScheduleIdleCheck() {
  if (options_.idle_timeout == absl::InfiniteDuration()) return;
  calls_at_idle_check_ = calls_opened_;
  poller_->poller->Schedule(
      &idle_timer_, Poller::NowNs() + absl::ToInt64Nanoseconds(
                                          options_.idle_timeout / kIdleChecks));
}

void Endpoint::OnIdleCheck() {
  if (connection_ == nullptr) return;
  const bool idle =
      connection_->live_calls() == 0 && calls_opened_ == calls_at_idle_check_;
  idle_checks_ = idle ? idle_checks_ + 1 : 0;
  if (idle_checks_ < kIdleChecks) {
    ScheduleIdleCheck();
    return;
  }
  connection_->Close(absl::UnavailableError("the connection was idle"));
}

void Endpoint::Shutdown() {
  absl::Notification done;
  poller_->poller->Run([this, &done] {
    shut_down_ = true;
    SetState(rpc::ConnectivityState::kShutdown);
    poller_->poller->timers().Cancel(&retry_timer_);
    poller_->poller->timers().Cancel(&idle_timer_);
    const absl::Status why = absl::CancelledError(kShutDown);
    FailPending(why);
    for (Connection* const leaving : std::exchange(leaving_, {})) {
      leaving->Close(why);
    }
    if (connection_ != nullptr) connection_->Close(why);
    done.Notify();
  });
  done.WaitForNotification();
}

// ---- State.

absl::StatusOr<rpc::Buffer> Endpoint::AllocateBuffer(size_t bytes) {
  return poller_->poller->context().memory().Allocate(bytes);
}

std::shared_ptr<rpc::GrowingMessage> Endpoint::GrowMessage(size_t bytes) {
  return rdma::GrowMessage(*poller_->poller, Sender::kClient, poller_, bytes);
}

void Endpoint::SetState(rpc::ConnectivityState state) {
  absl::MutexLock lock(&state_mutex_);
  state_.store(state);
  const bool failed = state == rpc::ConnectivityState::kTransientFailure;
  state_cause_ = failed ? last_failure_ : absl::OkStatus();
  for (rpc::StateListener* const listener : state_listeners_) {
    listener->OnState(state, state_cause_);
  }
}

void Endpoint::AddStateListener(rpc::StateListener* listener) {
  absl::MutexLock lock(&state_mutex_);
  state_listeners_.push_back(listener);
  if (!state_cause_.ok()) listener->OnState(state_.load(), state_cause_);
}

void Endpoint::RemoveStateListener(rpc::StateListener* listener) {
  absl::MutexLock lock(&state_mutex_);
  state_listeners_.erase(
      std::remove(state_listeners_.begin(), state_listeners_.end(), listener),
      state_listeners_.end());
}

rpc::ConnectivityState Endpoint::GetState(bool try_to_connect) {
  const rpc::ConnectivityState state = state_.load();
  if (try_to_connect && state == rpc::ConnectivityState::kIdle) {
    poller_->poller->Run([self = shared_from_this()] {
      if (self->state_.load() == rpc::ConnectivityState::kIdle) {
        self->StartConnecting();
      }
    });
  }
  return state;
}

bool Endpoint::WaitForStateChange(rpc::ConnectivityState last_observed,
                                  absl::Time deadline) {
  absl::MutexLock lock(&state_mutex_);
  const auto changed = [this, last_observed] {
    return state_.load() != last_observed;
  };
  return state_mutex_.AwaitWithDeadline(absl::Condition(&changed), deadline);
}

std::string Endpoint::peer() const {
  absl::MutexLock lock(&state_mutex_);
  return peer_;
}

std::string Endpoint::device() const {
  return std::string(poller_->poller->context().device()->name());
}

}  // namespace rdma
