// One call of a channel with several transports: it goes to one of them, and,
// where that is safe, to another when the first fails.
//
// It is the sink of its attempts, of which there is one at a time: the next
// begins when the one before is closed. What was sent is kept, and sent again
// by the next attempt, until the call is *committed*: once anything came from
// the server but an error without any metadata before it (gRPC's trailers
// only), or more was sent than is to be kept. From then on its frames just pass
// through. Where nothing may be repeated, it is so from the start.
//
//   Start --> waiting for a transport --> running --> over
//                ^                          |
//                +------ pausing <----------+   (it is to be tried again)
//
// Where an attempt is under way, the user's sink is called within that
// attempt's callbacks. Elsewhere nothing calls it but the end of the call. So
// its callbacks run one at a time.
//
// Thread rule: any thread. Neither transports nor the user's sink are called
// with the lock held; frames are sent by one thread at a time (`sending_`), in
// order, whichever thread brought them.
#ifndef VERBENA_RPC_ROUTING_ROUTED_CALL_H_
#define VERBENA_RPC_ROUTING_ROUTED_CALL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/routing/balancer.h"
#include "rpc/routing/call_retries.h"
#include "rpc/routing/deferred.h"
#include "rpc/routing/kept_frame.h"
#include "rpc/routing/retry_throttle.h"
#include "rpc/routing/routed_calls.h"
#include "rpc/routing/service_config.h"
#include "rpc/transport.h"

namespace rpc::routing {

// What the calls of a channel share, and keep alive.
struct CallEnvironment {
  std::unique_ptr<Balancer> balancer;
  // Where threads wait (ClientTransport::Wait), whichever transport their calls
  // are on: one of the balancer's, or own_home.
  ClientTransport* home = nullptr;
  std::unique_ptr<ClientTransport> own_home;
  RoutedCalls calls;
  std::shared_ptr<RetryThrottle> throttle;  // null: none
  bool retries = true;
  uint64_t retry_buffer_bytes = 0;
};

class RoutedCall final : public CallSink,
                         public Balancer::Waiter,
                         public std::enable_shared_from_this<RoutedCall> {
 public:
  // `config`: its method's; outlives the environment. `options`: as user and
  // config mean them. `handle`: its place in the environment's calls, which it
  // leaves when it is over.
  RoutedCall(std::shared_ptr<CallEnvironment> environment,
             const MethodConfig& config, const CallOptions& options,
             CallHandle handle, CallSink* sink);

  // ---- ClientTransport's, of this call.

  void Start(OutgoingFrame&& frame);
  bool Send(OutgoingFrame&& frame);
  void Release(uint64_t window_bytes, bool drained);
  void Cancel(absl::Status reason);

  // ---- CallSink, of its attempts.

  void OnFrame(IncomingFrame& frame) override;
  void OnSent() override;
  void OnClosed(const CallOutcome& outcome) override;

  // ---- Balancer::Waiter.

  uint32_t method() const override { return options_.method; }
  bool waits_for_ready() const override {
    return options_.wait_for_ready == WaitForReady::kYes;
  }
  void OnPick(const Balancer::Pick& pick) override;

 private:
  // kEnding: the last attempt is over, and the user's sink about to hear of it.
  enum class Phase { kWaiting, kRunning, kPausing, kEnding, kOver };

  // A frame on its way out.
  struct NextFrame {
    OutgoingFrame frame;
    std::shared_ptr<ClientTransport> transport;
    CallHandle handle;
    bool opens;        // the attempt
    uint64_t attempt;  // its number
    uint32_t method;
    std::shared_ptr<KeptFrame> kept;  // what `frame` refers to
    std::string header;               // the same, where it is not the first's
  };

  // Seeks a transport.
  void Route();
  void Begin(const Balancer::Pick& pick);
  // An attempt ended, or none could begin.
  void AfterAttempt(const CallOutcome& outcome);
  // When the next attempt begins; none: this one was the last.
  std::optional<absl::Duration> PauseBeforeNext(const CallOutcome& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<absl::Duration> PauseByPolicy(const CallOutcome& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Pause(absl::Duration pause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetTimer(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTime();

  // Sends what is there to be sent, unless another thread is at it.
  void SendFrames();
  bool TakeNext(NextFrame& next);
  void Open(NextFrame& next);
  // Of an attempt on `transport` that this thread begins.
  NextWait NextWaitFor(const ClientTransport& transport) const;
  bool CanPassOn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(OutgoingFrame&& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Commit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What the user's sink is to hear of it before a frame; empty: nothing.
  std::string TakePeer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnTooLarge(uint64_t bytes);
  // Calls the user's sink; then threads that wait look at their events.
  template <typename Callback>
  void CallBack(Callback&& callback);
  // The end, on this thread, or where the sink may block, on the executor's.
  void Finish(CallOutcome outcome);
  void FinishElsewhere(CallOutcome outcome);

  const std::shared_ptr<CallEnvironment> environment_;
  const MethodConfig& config_;
  const CallOptions options_;
  const CallHandle handle_;
  CallSink* const sink_;

  absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kWaiting;
  absl::Status cancel_ ABSL_GUARDED_BY(mutex_);  // not OK: it is to end
  // Not OK: how it ends, whatever its attempt does.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool may_have_run_ ABSL_GUARDED_BY(mutex_) = false;  // any attempt
  std::shared_ptr<Timer> timer_ ABSL_GUARDED_BY(mutex_);
  CallRetries retries_ ABSL_GUARDED_BY(mutex_);
  int transparent_retries_ ABSL_GUARDED_BY(mutex_) = 0;

  // This attempt.
  uint64_t attempt_ ABSL_GUARDED_BY(mutex_) = 0;  // counted from 1
  std::shared_ptr<ClientTransport> transport_ ABSL_GUARDED_BY(mutex_);
  std::string peer_ ABSL_GUARDED_BY(mutex_);  // once something came of it
  uint32_t transport_method_ ABSL_GUARDED_BY(mutex_) = 0;
  CallHandle attempt_handle_ ABSL_GUARDED_BY(mutex_);   // 0: not known yet
  uint64_t release_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // until it is known
  // OnSent's that the user has had already, of an attempt before.
  uint64_t old_sent_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_by_frame_ ABSL_GUARDED_BY(mutex_) = false;
  bool told_peer_ ABSL_GUARDED_BY(mutex_) = false;
  // An error that may not be the last word.
  std::unique_ptr<HeldIncomingFrame> held_ ABSL_GUARDED_BY(mutex_);

  // What is sent.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the user sent the last frame
  bool committed_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::shared_ptr<KeptFrame>> frames_ ABSL_GUARDED_BY(mutex_);
  uint64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t next_frame_ ABSL_GUARDED_BY(mutex_) = 0;  // of frames_
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // OnSent's the user has had
};

}  // namespace rpc::routing

#endif  // VERBENA_RPC_ROUTING_ROUTED_CALL_H_
