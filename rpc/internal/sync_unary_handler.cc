#include "rpc/internal/sync_unary_handler.h"

#include <cstddef>

namespace rpc::internal {
namespace {

// To serialize so much takes a small part of HandlerPacer::kLong, also where it
// is many fields.
constexpr size_t kSmallResponseBytes = 16 << 10;

}  // namespace

void HandlerWatch::OnReturned(const Status& status, ConstMessageRef response) {
  const auto* const message = response.lite();
  const bool is_small =
      !status.ok() ||
      (message != nullptr && message->ByteSizeLong() <= kSmallResponseBytes);
  if (is_small) returned_ = HandlerPacer::Clock::now();
}

void SyncServerCall::RunTimed() {
  HandlerPacer& pacer = method().pacer;
  HandlerWatch watch;
  RunHandler(&watch);
  pacer.EndInline();
  pacer.RecordInline(watch.Took());
}

void SyncServerCall::RunTask() {
  if (!IsStillWanted()) return;
  // The server outlives its executor, but the call not its handler.
  HandlerPacer& pacer = method().pacer;
  HandlerWatch watch;
  RunHandler(&watch);
  pacer.RecordOffloaded(watch.Took());
}

}  // namespace rpc::internal
