#include "rpc/routing/call_retries.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "rpc/internal/header_block.h"

namespace rpc::routing {
namespace {

constexpr double kJitter = 0.2;  // gRPC's
constexpr std::string_view kPushbackKey = "grpc-retry-pushback-ms";
constexpr std::string_view kAttemptsKey = "grpc-previous-rpc-attempts";

}  // namespace

std::optional<absl::Duration> CallRetries::AfterAttempt(
    uint32_t code, bool committed, std::optional<absl::Duration> pushback,
    Draw draw) {
  if (policy_ == nullptr) return std::nullopt;
  if (code == 0) {
    if (throttle_ != nullptr) throttle_->OnSuccess();
    return std::nullopt;
  }
  // Failures of other kinds say nothing about how the server fares.
  if (!policy_->IsRetryable(code)) return std::nullopt;
  if (throttle_ != nullptr && !throttle_->OnFailure()) return std::nullopt;
  if (committed || ++attempts_ >= policy_->max_attempts) return std::nullopt;
  if (!pushback.has_value()) return NextBackoff(draw);
  if (*pushback < absl::ZeroDuration()) return std::nullopt;
  backoff_ = absl::ZeroDuration();
  return pushback;
}

// The first pause is as long as the policy says, as gRPC's is.
absl::Duration CallRetries::NextBackoff(Draw draw) {
  if (backoff_ == absl::ZeroDuration()) {
    return backoff_ = policy_->initial_backoff;
  }
  backoff_ =
      std::min(backoff_ * policy_->backoff_multiplier, policy_->max_backoff);
  return backoff_ * draw(1 - kJitter, 1 + kJitter);
}

void CallRetries::AddAttempts(std::string& header) const {
  internal::HeaderBlockWriter writer(&header);
  writer.Add(internal::HeaderKind::kInitialMetadata, kAttemptsKey,
             absl::StrCat(attempts_));
}

std::optional<absl::Duration> CallRetries::PushbackIn(
    absl::Span<const std::byte> header) {
  internal::HeaderBlockReader reader(header);
  internal::HeaderEntry entry;
  while (reader.Next(&entry)) {
    if (entry.kind != internal::HeaderKind::kTrailingMetadata ||
        entry.key != kPushbackKey) {
      continue;
    }
    int64_t milliseconds;
    if (!absl::SimpleAtoi(std::string(entry.value), &milliseconds)) {
      return -absl::InfiniteDuration();
    }
    return absl::Milliseconds(milliseconds);
  }
  return std::nullopt;
}

}  // namespace rpc::routing
