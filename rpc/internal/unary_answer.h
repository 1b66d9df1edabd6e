// How a unary call takes its usual answer, for subclasses of ClientUnaryCall,
// in line.
#ifndef VERBENA_RPC_INTERNAL_UNARY_ANSWER_H_
#define VERBENA_RPC_INTERNAL_UNARY_ANSWER_H_

#include <atomic>
#include <string_view>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "rpc/client_context.h"
#include "rpc/internal/client_unary_call.h"

namespace rpc::internal {

inline bool ClientUnaryCall::has_started() const {
  return (context_->phase_.load(std::memory_order_acquire) &
          ClientContext::kStarted) != 0;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool ClientUnaryCall::TakeOnlyMessage(
    std::string_view message) {
  auto* const response = response_.lite();
  if (ABSL_PREDICT_FALSE(response == nullptr || came_ != 0 ||
                         message.size() > kLargeBytes || !has_started() ||
                         // OnFrame says what is wrong with it.
                         !parse_(message, response))) {
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
