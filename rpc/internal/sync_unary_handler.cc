#include "rpc/internal/sync_unary_handler.h"

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"

namespace rpc::internal {

void SyncServerCall::Run() {
  const HandlerPacer& pacer = method().pacer;
  if (ABSL_PREDICT_FALSE(pacer.offload() || pacer.IsInlineRunning())) {
    RunOnExecutor();
  } else {
    RunInline();
  }
}

void SyncServerCall::RunInline() {
  HandlerPacer& pacer = method().pacer;
  pacer.BeginInline();
  if (ABSL_PREDICT_TRUE(!pacer.ShouldTime())) {
    RunHandler();
    pacer.EndInline();
    return;
  }
  const HandlerPacer::Clock::time_point start = HandlerPacer::Clock::now();
  RunHandler();
  pacer.EndInline();
  pacer.RecordInline(HandlerPacer::Clock::now() - start);
}

void SyncServerCall::RunOnExecutor() {
  // First, for the handler may be through before Post returns.
  Detach();
  KeepPeer();
  if (core().executor->Post(this)) return;
  Respond(Status(StatusCode::RESOURCE_EXHAUSTED,
                 "the server's handlers are all busy and the queue of calls is "
                 "full (verbena.handler_threads, verbena.handler_queue)"),
          nullptr);
  Finished();
}

void SyncServerCall::RunTask() {
  if (closed()) return Finished();
  if (deadline() != absl::InfiniteFuture() && deadline() < absl::Now()) {
    CancelWith(absl::DeadlineExceededError(
        "the deadline passed before a thread was free for the handler"));
    return Finished();
  }
  // The server outlives its executor, but the call not its handler.
  HandlerPacer& pacer = method().pacer;
  const HandlerPacer::Clock::time_point start = HandlerPacer::Clock::now();
  RunHandler();
  pacer.RecordOffloaded(HandlerPacer::Clock::now() - start);
}

}  // namespace rpc::internal
