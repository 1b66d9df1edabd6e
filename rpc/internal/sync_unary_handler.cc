#include "rpc/internal/sync_unary_handler.h"

namespace rpc::internal {

void SyncServerCall::RunTimed() {
  HandlerPacer& pacer = method().pacer;
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
