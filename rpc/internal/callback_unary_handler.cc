#include "rpc/internal/callback_unary_handler.h"

#include <exception>

#include "absl/base/optimization.h"
#include "rpc/internal/thrown.h"
#include "rpc/logging.h"

namespace rpc::internal {

void CallbackServerCall::Run() {
  KeepPeer();
  context_.default_reactor_.BindEarly(this);
  ServerUnaryReactor* reactor;
  try {
    reactor = CallHandler();
  } catch (...) {
    return Finish(StatusOfThrown(std::current_exception()));
  }
  if (ABSL_PREDICT_FALSE(reactor == nullptr)) {
    return Finish(Status(StatusCode::UNIMPLEMENTED, ""));
  }
  reactor_.store(reactor, std::memory_order_release);
  if (reactor == &context_.default_reactor_) return;
  if (ABSL_PREDICT_FALSE(interception() != nullptr) &&
      interception()->ComesSecond()) {
    reactor->OnCancel();
  }
  reactor->Bind(this);
}

void CallbackServerCall::Finish(Status status) {
  if (ABSL_PREDICT_FALSE(finished())) {
    Log(LogLevel::kError, "ServerUnaryReactor::Finish was called twice");
    return;
  }
  RespondAndFinish(status, response());
}

void CallbackServerCall::SendInitialMetadata() {
  HoldOpen();
  if (!SendInitialMetadataAlone()) OnInitialMetadataUnsent();
  LetGo();
}

// The user may hold locks here that the reaction takes.
void CallbackServerCall::OnInitialMetadataUnsent() {
  if (!OweUnsentMetadata()) return;
  if (!core().executor->Post(this)) ReportUnsentMetadata();
}

// The default reactor is bound already, and does not listen.
void CallbackServerCall::OnCutOff() {
  if (interception() != nullptr && !interception()->ComesSecond()) return;
  ServerUnaryReactor* const reactor = reactor_.load(std::memory_order_acquire);
  if (reactor != nullptr) reactor->OnCancel();
}

void CallbackServerCall::OnInitialMetadataSent(bool ok) {
  ServerUnaryReactor* const reactor = reactor_.load(std::memory_order_acquire);
  if (reactor != nullptr) reactor->OnSendInitialMetadataDone(ok);
}

void CallbackServerCall::CompleteLate() {
  if (!core().executor->Post(this)) Complete();
}

void CallbackServerCall::OnComplete() {
  ServerUnaryReactor* const reactor = reactor_.load(std::memory_order_acquire);
  if (reactor == nullptr) return;
  reactor_.store(nullptr, std::memory_order_relaxed);
  reactor->Unbind();
  reactor->OnDone();
}

}  // namespace rpc::internal
