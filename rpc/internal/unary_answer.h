// How a unary call takes its usual answer, for subclasses of ClientUnaryCall,
// in line.
#ifndef VERBENA_RPC_INTERNAL_UNARY_ANSWER_H_
#define VERBENA_RPC_INTERNAL_UNARY_ANSWER_H_

#include <atomic>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_unary_call.h"
#include "rpc/status.h"
#include "rpc/transport.h"

namespace rpc::internal {

// It has a small message that is parsed as it is, and nothing else.
inline bool ClientUnaryCall::IsUsual(const IncomingFrame& frame) const {
  return ABSL_PREDICT_TRUE(came_ == 0) &&
         ABSL_PREDICT_TRUE(frame.has_message) &&
         ABSL_PREDICT_TRUE(frame.status_code == StatusCode::OK) &&
         ABSL_PREDICT_TRUE(frame.message.is_one_buffer()) &&
         ABSL_PREDICT_TRUE(frame.message.size() <= kLargeBytes) &&
         ABSL_PREDICT_TRUE(frame.header.empty()) &&
         ABSL_PREDICT_TRUE(frame.attachment.empty());
}

inline bool ClientUnaryCall::has_started() const {
  return (context_->phase_.load(std::memory_order_acquire) &
          ClientContext::kStarted) != 0;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ClientUnaryCall::TakeUsualAnswer(
    IncomingFrame& frame, const CallOutcome& outcome) {
  auto* const response = response_.lite();
  if (ABSL_PREDICT_FALSE(response == nullptr || !IsUsual(frame) ||
                         !has_started())) {
    TakeUnusualAnswer(frame, outcome);
    return false;
  }
  if (ABSL_PREDICT_FALSE(!parse_(frame.message.only().view(), response))) {
    EndMalformed(frame, outcome);
    return false;
  }
  came_ = kAll;
  return true;
}

inline void ClientUnaryCall::End() {
  context_->may_have_run_ = true;
  context_->phase_.store(ClientContext::kStarted | ClientContext::kOver,
                         std::memory_order_relaxed);
}

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_UNARY_ANSWER_H_
