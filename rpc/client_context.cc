#include "rpc/client_context.h"

#include "absl/status/status.h"

namespace rpc {

void ClientContext::AddMetadata(const std::string& key,
                                const std::string& value) {
  if (sent_ == nullptr) sent_ = std::make_unique<SentMetadata>();
  sent_->pairs.emplace(key, value);
}

void ClientContext::TryCancel() {
  const uint32_t before =
      phase_.fetch_or(kCancelled, std::memory_order_acq_rel);
  // Not started: whoever starts it sees the bit.
  if ((before & kStarted) == 0 || (before & kOver) != 0) return;
  transport_->Cancel(handle_, absl::CancelledError("Cancelled by TryCancel"));
}

}  // namespace rpc
