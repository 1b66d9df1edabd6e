#include "rpc/status.h"

#include <array>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace rpc {
namespace {

constexpr std::array<const char*, 17> kCodeNames = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

// Never destroyed, so that they are there before and after main.
const Status& OkStatus() {
  static const auto* const status = new Status();
  return *status;
}
const Status& CancelledStatus() {
  static const auto* const status = new Status(StatusCode::CANCELLED, "");
  return *status;
}

std::string DetailsOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(Status::kDetailsPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace

const Status& Status::OK = OkStatus();
const Status& Status::CANCELLED = CancelledStatus();

const char* StatusCodeName(StatusCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "UNKNOWN";
}

Status::Status(StatusCode code, const std::string& error_message,
               const std::string& error_details)
    : code_(code) {
  if (error_message.empty() && error_details.empty()) return;
  text_ = std::make_unique<const Text>(Text{error_message, error_details});
}

Status::Status(const absl::Status& status)
    : Status(static_cast<StatusCode>(status.code()),
             std::string(status.message()), DetailsOf(status)) {}

void Status::CopyText(const Text& text) {
  text_ = std::make_unique<const Text>(text);
}

absl::Status Status::ToAbslStatus() const {
  absl::Status status(static_cast<absl::StatusCode>(code_),
                      text_ == nullptr ? "" : text_->message);
  if (text_ != nullptr && !text_->details.empty()) {
    status.SetPayload(kDetailsPayload, absl::Cord(text_->details));
  }
  return status;
}

std::string Status::ToString() const {
  if (text_ == nullptr) return StatusCodeName(code_);
  return absl::StrCat(StatusCodeName(code_), ": ", text_->message);
}

std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << status.ToString();
}

}  // namespace rpc
