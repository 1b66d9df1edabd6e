// What a call on a server with interceptors does for them (InterceptedCall).
#include <memory>

#include "rpc/internal/callback_scope.h"
#include "rpc/internal/received_metadata.h"
#include "rpc/internal/sent_metadata.h"
#include "rpc/internal/server_call.h"

namespace rpc::internal {

void ServerCall::Arrive(const Status& error) {
  const auto go_on = [this, error] { error.ok() ? Run() : Refuse(error); };
  if (IsAsynchronous()) return go_on();
  interception_->Arrive(error.ok() ? request() : MessageRef(), go_on);
}

void ServerCall::SentNow() {
  CallbackScope scope(interception());
  if (TakePending(kPendingMetadata)) {
    OnInitialMetadataSent(true);
  } else {
    OnMessageSent();
  }
}

// The interception holds the call: the handler's side ends later.
void ServerCall::ClosedNow(const CallOutcome& outcome) {
  CallbackScope scope(interception());
  transport_cut_off_ = nullptr;
  if (outcome.status.ok()) {
    OnOrderlyEnd();
  } else {
    NoteCutOff();
  }
  if (pending_.load(std::memory_order_seq_cst) != 0) {
    DoPending(outcome.status.ok());
  }
  const uint32_t before = phase_.fetch_add(kClosed, std::memory_order_acq_rel);
  if (before & kOwing) ReportUnsentMetadata();
}

void ServerCall::FinishedNow() {
  if (phase_.fetch_add(kFinished, std::memory_order_acq_rel) == kClosed) {
    CompleteLate();
  }
}

void ServerCall::RespondNow(const Status& status, ConstMessageRef response) {
  if (!closed()) RespondWithHeader(status, response, /*last_act=*/false);
}

void ServerCall::SendInitialMetadataNow() {
  if (!TrySendInitialMetadata()) OnInitialMetadataUnsent();
}

// It has metadata to send, if none yet: so Respond takes the long way.
ServerContextBase* ServerCall::intercepted_context() {
  context_->sent();
  return context_;
}

MetadataMap* ServerCall::sent_initial_metadata() {
  return &context_->sent().initial;
}

MetadataMap* ServerCall::sent_trailing_metadata() {
  return &context_->sent().trailing;
}

ReceivedMetadataMap* ServerCall::received_metadata() {
  if (context_->received_ == nullptr) MakeReceived();
  return context_->received_->mutable_initial();
}

}  // namespace rpc::internal
