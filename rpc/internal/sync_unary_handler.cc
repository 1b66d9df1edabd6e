#include "rpc/internal/sync_unary_handler.h"

#include "absl/base/optimization.h"

namespace rpc::internal {

void SyncServerCall::Run() {
  const HandlerPacer& pacer = method().pacer;
  if (ABSL_PREDICT_FALSE(pacer.offload() || pacer.IsInlineRunning())) {
    RunOnExecutor();
  } else {
    RunInline();
  }
}

inline void SyncServerCall::RunInline() {
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

void SyncServerCall::RunTask() {
  if (!IsStillWanted()) return;
  // The server outlives its executor, but the call not its handler.
  HandlerPacer& pacer = method().pacer;
  const HandlerPacer::Clock::time_point start = HandlerPacer::Clock::now();
  RunHandler();
  pacer.RecordOffloaded(HandlerPacer::Clock::now() - start);
}

}  // namespace rpc::internal
