#include "rpc/routing/routed_call.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/header_block.h"

namespace rpc::routing {
namespace {

// A connection that is there and fails its calls before they leave is not
// tried again and again at full speed.
constexpr absl::Duration kFirstPause = absl::Milliseconds(1);
constexpr int kMostDoublings = 10;

// The call whose Start is on this thread's stack.
constinit thread_local const RoutedCall* starting_here = nullptr;

absl::Duration TransparentPause(int retries_before) {
  if (retries_before == 0) return absl::ZeroDuration();
  return kFirstPause * (1 << std::min(retries_before - 1, kMostDoublings));
}

bool HasInitialMetadata(absl::Span<const std::byte> header) {
  internal::HeaderBlockReader reader(header);
  internal::HeaderEntry entry;
  while (reader.Next(&entry)) {
    if (entry.kind == internal::HeaderKind::kInitialMetadata) return true;
  }
  return false;
}

// gRPC's trailers only: all that is known is that the call failed.
bool IsTrailersOnly(const IncomingFrame& frame) {
  return frame.end && frame.status_code != 0 &&
         !HasInitialMetadata(frame.header);
}

// Seldom: seeding costs more than the number.
double Draw(double low, double high) {
  absl::InsecureBitGen random;
  return absl::Uniform(random, low, high);
}

absl::Status TooLarge(const char* what, uint64_t bytes, uint64_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " message larger than max (", bytes, " vs. ", limit,
                   "), by the service config"));
}

uint64_t MessageBytes(const OutgoingFrame& frame) {
  return frame.small_message.size() + frame.message.size();
}

absl::Status DeadlineExceeded() {
  return absl::DeadlineExceededError("Deadline Exceeded");
}

}  // namespace

RoutedCall::RoutedCall(std::shared_ptr<CallEnvironment> environment,
                       const MethodConfig& config, const CallOptions& options,
                       CallHandle handle, CallSink* sink)
    : environment_(std::move(environment)),
      config_(config),
      options_(options),
      handle_(handle),
      sink_(sink),
      retries_(environment_->retries && config.retry.has_value()
                   ? &*config.retry
                   : nullptr,
               environment_->throttle.get()) {}

// ---- Beginning, and beginning again.

void RoutedCall::Start(OutgoingFrame&& frame) {
  if (const uint64_t bytes = MessageBytes(frame);
      bytes > config_.max_request_bytes) {
    return FinishElsewhere({TooLarge("Sent", bytes, config_.max_request_bytes),
                            /*may_have_run=*/false});
  }
  {
    absl::MutexLock lock(&mutex_);
    ended_ = frame.end;
    if (!environment_->retries) Commit();  // nothing is kept to be repeated
    Keep(std::move(frame));
  }
  const RoutedCall* const outer = std::exchange(starting_here, this);
  Route();
  starting_here = outer;
}

void RoutedCall::Route() {
  if (options_.deadline <= absl::Now()) {
    return FinishElsewhere({DeadlineExceeded(), /*may_have_run=*/false});
  }
  const std::shared_ptr<RoutedCall> self = shared_from_this();
  const Balancer::Pick pick = environment_->balancer->PickOrWait(self);
  if (pick.transport != nullptr || !pick.failure.ok()) return OnPick(pick);
  absl::Status cancel;
  {
    // It may be running by now, on another thread.
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kWaiting) return;
    cancel = cancel_;
    if (cancel.ok()) SetTimer(options_.deadline);
  }
  // Whoever cancelled it was too early to find it there.
  if (!cancel.ok() && environment_->balancer->Forget(this)) {
    FinishElsewhere({std::move(cancel), /*may_have_run=*/false});
  }
}

void RoutedCall::OnPick(const Balancer::Pick& pick) {
  absl::Status cancel;
  {
    absl::MutexLock lock(&mutex_);
    StopTimer();
    cancel = cancel_;
  }
  if (!cancel.ok()) {
    FinishElsewhere({std::move(cancel), /*may_have_run=*/false});
  } else if (pick.transport == nullptr) {
    AfterAttempt({pick.failure, /*may_have_run=*/false});
  } else {
    Begin(pick);
  }
}

void RoutedCall::Begin(const Balancer::Pick& pick) {
  {
    absl::MutexLock lock(&mutex_);
    phase_ = Phase::kRunning;
    ++attempt_;
    transport_ = pick.transport;
    transport_method_ = pick.method;
    attempt_handle_ = CallHandle();
    peer_.clear();
    release_bytes_ = 0;
    next_frame_ = 0;
    old_sent_ = sent_;
  }
  SendFrames();
}

void RoutedCall::AfterAttempt(const CallOutcome& outcome) {
  std::optional<absl::Duration> pause;
  bool within_callback;
  {
    absl::MutexLock lock(&mutex_);
    within_callback = transport_ != nullptr;
    may_have_run_ = may_have_run_ || outcome.may_have_run || held_ != nullptr;
    pause = PauseBeforeNext(outcome);
    if (within_callback && peer_.empty()) peer_ = transport_->peer();
    transport_ = nullptr;
    phase_ = pause.has_value() ? Phase::kWaiting : Phase::kEnding;
    if (pause.has_value()) {
      held_.reset();
      if (*pause > absl::ZeroDuration()) Pause(*pause);
    }
  }
  if (!pause.has_value()) {
    // Without an attempt the user's own stack may be below.
    return within_callback ? Finish(outcome) : FinishElsewhere(outcome);
  }
  if (*pause == absl::ZeroDuration()) Route();
}

std::optional<absl::Duration> RoutedCall::PauseBeforeNext(
    const CallOutcome& outcome) {
  if (!cancel_.ok() || ended_by_frame_) return std::nullopt;
  const bool certain = held_ == nullptr && !outcome.may_have_run &&
                       transport_ != nullptr && !committed_ &&
                       outcome.status.code() == absl::StatusCode::kUnavailable;
  if (certain && environment_->retries) {
    return TransparentPause(transparent_retries_++);
  }
  return PauseByPolicy(outcome);
}

std::optional<absl::Duration> RoutedCall::PauseByPolicy(
    const CallOutcome& outcome) {
  if (held_ == nullptr) {
    return retries_.AfterAttempt(static_cast<uint32_t>(outcome.status.code()),
                                 committed_, std::nullopt, Draw);
  }
  const IncomingFrame& last = held_->get();
  return retries_.AfterAttempt(last.status_code, committed_,
                               CallRetries::PushbackIn(last.header), Draw);
}

void RoutedCall::Pause(absl::Duration pause) {
  phase_ = Phase::kPausing;
  SetTimer(std::min(absl::Now() + pause, options_.deadline));
}

// Another thread's may be running: one that is lost sight of would keep the
// call until its time.
void RoutedCall::SetTimer(absl::Time time) {
  StopTimer();
  if (time == absl::InfiniteFuture()) return;
  timer_ = Timer::Start(time, [self = shared_from_this()] { self->OnTime(); });
}

void RoutedCall::StopTimer() {
  if (timer_ != nullptr) std::exchange(timer_, nullptr)->Cancel();
}

void RoutedCall::OnTime() {
  Phase phase;
  {
    absl::MutexLock lock(&mutex_);
    phase = phase_;
    if (!cancel_.ok()) return;  // whoever did that ends it
    if (phase == Phase::kPausing) phase_ = Phase::kWaiting;
  }
  if (phase == Phase::kPausing) return Route();
  if (phase == Phase::kWaiting && options_.deadline <= absl::Now() &&
      environment_->balancer->Forget(this)) {
    Finish({DeadlineExceeded(), /*may_have_run=*/false});
  }
}

// ---- What the user does.

bool RoutedCall::Send(OutgoingFrame&& frame) {
  if (const uint64_t bytes = MessageBytes(frame);
      bytes > config_.max_request_bytes) {
    Cancel(TooLarge("Sent", bytes, config_.max_request_bytes));
    return false;
  }
  std::shared_ptr<ClientTransport> transport;
  CallHandle handle;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kOver || ended_) return false;
    ended_ = frame.end;
    if (CanPassOn()) {
      sending_ = true;
      transport = transport_;
      handle = attempt_handle_;
    } else {
      Keep(std::move(frame));
    }
  }
  bool sent = false;
  if (transport != nullptr) {
    sent = transport->Send(handle, std::move(frame));
    absl::MutexLock lock(&mutex_);
    sending_ = false;
  }
  SendFrames();
  return sent;
}

void RoutedCall::Release(uint64_t window_bytes, bool drained) {
  std::shared_ptr<ClientTransport> transport;
  CallHandle handle;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kRunning) return;
    transport = transport_;
    handle = attempt_handle_;
    if (!handle) release_bytes_ += window_bytes;
  }
  if (handle) transport->Release(handle, window_bytes, drained);
}

void RoutedCall::Cancel(absl::Status reason) {
  Phase phase;
  std::shared_ptr<ClientTransport> transport;
  CallHandle handle;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kOver || !cancel_.ok()) return;
    cancel_ = reason;
    phase = phase_;
    transport = transport_;
    handle = attempt_handle_;
    StopTimer();
  }
  if (phase == Phase::kRunning) {
    // Without the handle: who opens the attempt does it.
    if (handle) transport->Cancel(handle, std::move(reason));
  } else if (phase == Phase::kPausing || environment_->balancer->Forget(this)) {
    FinishElsewhere({std::move(reason), /*may_have_run=*/false});
  }
}

// ---- Sending.

void RoutedCall::Keep(OutgoingFrame&& frame) {
  frames_.push_back(std::make_shared<KeptFrame>(std::move(frame)));
  kept_bytes_ += frames_.back()->bytes();
  if (!committed_ && kept_bytes_ > environment_->retry_buffer_bytes) Commit();
}

// What this attempt has sent is not needed any more.
void RoutedCall::Commit() {
  committed_ = true;
  frames_.erase(frames_.begin(),
                frames_.begin() + static_cast<ptrdiff_t>(next_frame_));
  next_frame_ = 0;
}

bool RoutedCall::CanPassOn() const {
  return committed_ && phase_ == Phase::kRunning && attempt_handle_ &&
         !sending_ && frames_.empty();
}

void RoutedCall::SendFrames() {
  {
    absl::MutexLock lock(&mutex_);
    if (sending_) return;
    sending_ = true;
  }
  for (NextFrame next; TakeNext(next);) {
    if (next.opens) {
      Open(next);
    } else {
      next.transport->Send(next.handle, std::move(next.frame));
    }
    next = NextFrame();
  }
}

bool RoutedCall::TakeNext(NextFrame& next) {
  absl::MutexLock lock(&mutex_);
  sending_ = phase_ == Phase::kRunning && next_frame_ < frames_.size();
  if (!sending_) return false;
  next.transport = transport_;
  next.handle = attempt_handle_;
  next.opens = !attempt_handle_;
  next.attempt = attempt_;
  next.method = transport_method_;
  const bool is_repeated = next.opens && retries_.attempts() > 0;
  next.kept = frames_[next_frame_];
  if (committed_) {
    frames_.pop_front();
    next.frame = next.kept->Take();
  } else {
    ++next_frame_;
    next.frame = next.kept->Share();
  }
  if (is_repeated) {
    next.header = next.kept->header();
    retries_.AddAttempts(next.header);
    next.frame.header = {reinterpret_cast<const std::byte*>(next.header.data()),
                         next.header.size()};
  }
  return true;
}

void RoutedCall::Open(NextFrame& next) {
  CallOptions options;
  options.method = next.method;
  options.deadline = options_.deadline;
  options.wait_for_ready = WaitForReady::kNo;
  options.next_wait = NextWaitFor(*next.transport);
  options.quick = options_.quick;
  const CallHandle handle =
      next.transport->StartCall(options, std::move(next.frame), this);
  absl::Status cancel;
  uint64_t release_bytes;
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kRunning || attempt_ != next.attempt) return;
    attempt_handle_ = handle;
    release_bytes = std::exchange(release_bytes_, 0);
    cancel = cancel_;
  }
  if (release_bytes > 0) {
    next.transport->Release(handle, release_bytes, /*drained=*/false);
  }
  if (!cancel.ok()) next.transport->Cancel(handle, std::move(cancel));
}

// What the user's thread does next it does at home; and that thread need not be
// the one that begins an attempt.
NextWait RoutedCall::NextWaitFor(const ClientTransport& transport) const {
  const bool holds =
      options_.next_wait == NextWait::kAsGuest ||
      (options_.next_wait == NextWait::kAtOnce && starting_here == this);
  return holds && transport.driven() == environment_->home->driven()
             ? options_.next_wait
             : NextWait::kUnknown;
}

// ---- What comes.

template <typename Callback>
void RoutedCall::CallBack(Callback&& callback) {
  {
    internal::CallbackScope scope(this);
    callback();
  }
  environment_->home->WakeWaiters();
}

std::string RoutedCall::TakePeer() {
  return std::exchange(told_peer_, true) ? "" : peer_;
}

void RoutedCall::OnFrame(IncomingFrame& frame) {
  if (frame.message.size() > config_.max_response_bytes) {
    return OnTooLarge(frame.message.size());
  }
  std::string peer;
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    if (peer_.empty()) peer_ = transport_->peer();
    if (!committed_ && IsTrailersOnly(frame)) {
      held_ = std::make_unique<HeldIncomingFrame>(frame);
      return;
    }
    if (!committed_) Commit();
    peer = TakePeer();
    ended_by_frame_ = frame.end;
    // Too late to be repeated, but it counts.
    if (frame.end) {
      retries_.AfterAttempt(frame.status_code, committed_, std::nullopt, Draw);
    }
  }
  CallBack([&] {
    if (!peer.empty()) sink_->OnPeer(peer);
    sink_->OnFrame(frame);
  });
}

// It may have been the last frame, so that there is nothing left to cancel.
void RoutedCall::OnTooLarge(uint64_t bytes) {
  absl::Status failure =
      TooLarge("Received", bytes, config_.max_response_bytes);
  {
    absl::MutexLock lock(&mutex_);
    if (!committed_) Commit();
    if (failure_.ok()) failure_ = failure;
  }
  Cancel(std::move(failure));
}

void RoutedCall::OnSent() {
  {
    absl::MutexLock lock(&mutex_);
    if (old_sent_ > 0) {
      --old_sent_;
      return;
    }
    ++sent_;
  }
  CallBack([&] { sink_->OnSent(); });
}

void RoutedCall::OnClosed(const CallOutcome& outcome) { AfterAttempt(outcome); }

// ---- The end.

void RoutedCall::Finish(CallOutcome outcome) {
  const std::shared_ptr<RoutedCall> self = shared_from_this();
  std::unique_ptr<HeldIncomingFrame> held;
  std::string peer;
  std::deque<std::shared_ptr<KeptFrame>>
      frames;  // their memory is the user's again
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kOver) return;
    phase_ = Phase::kOver;
    StopTimer();
    held = std::move(held_);
    peer = TakePeer();
    frames = std::move(frames_);
    if (!failure_.ok()) outcome.status = failure_;
    outcome.may_have_run = outcome.may_have_run || may_have_run_;
  }
  frames.clear();
  CallBack([&] {
    if (!peer.empty()) sink_->OnPeer(peer);
    if (held != nullptr) sink_->OnFrame(held->get());
    sink_->OnClosed(outcome);
  });
  environment_->calls.Remove(handle_);
}

void RoutedCall::FinishElsewhere(CallOutcome outcome) {
  if (options_.quick) return Finish(std::move(outcome));
  absl::AnyInvocable<void()> finish = [self = shared_from_this(), outcome] {
    self->Finish(outcome);
  };
  if (!RunSoon(finish)) finish();
}

}  // namespace rpc::routing
