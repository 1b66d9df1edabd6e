#include "rpc/server_callback.h"

#include <utility>

#include "rpc/logging.h"

namespace rpc {

internal::ServerCallbackUnary* ServerUnaryReactor::CallOrFlag(uintptr_t flag) {
  uintptr_t state = state_.load(std::memory_order_acquire);
  while (!IsCall(state)) {
    if (state_.compare_exchange_weak(state, state | flag,
                                     std::memory_order_acq_rel)) {
      return nullptr;
    }
  }
  return ToCall(state);
}

void ServerUnaryReactor::Finish(Status status) {
  const uintptr_t state = state_.load(std::memory_order_acquire);
  if (IsCall(state)) {
    ToCall(state)->Finish(std::move(status));
    return;
  }
  if (state & kFinish) {
    Log(LogLevel::kError, "ServerUnaryReactor::Finish was called twice");
    return;
  }
  // The flag publishes the status; a call that came meanwhile gets it here.
  early_status_ = std::move(status);
  if (auto* const call = CallOrFlag(kFinish)) {
    call->Finish(std::move(early_status_));
  }
}

void ServerUnaryReactor::StartSendInitialMetadata() {
  if (auto* const call = CallOrFlag(kSendInitialMetadata)) {
    call->SendInitialMetadata();
  }
}

void ServerUnaryReactor::Bind(internal::ServerCallbackUnary* call) {
  const uintptr_t before = state_.exchange(reinterpret_cast<uintptr_t>(call),
                                           std::memory_order_acq_rel);
  if (IsCall(before)) return;
  if (before & kSendInitialMetadata) call->SendInitialMetadata();
  if (before & kFinish) call->Finish(std::move(early_status_));
}

}  // namespace rpc
