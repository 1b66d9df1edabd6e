// How a call ended: a code, and for errors a text and optional details.
//
// Codes and their meaning are gRPC's (its "Status codes" document). A status
// converts from absl::Status implicitly, so that a handler may return one, and
// to it explicitly:
//
//   rpc::Status Get(rpc::ServerContext*, const GetRequest* request, ...) {
//     if (!Known(request->key())) {
//       return rpc::Status(rpc::StatusCode::NOT_FOUND, "no such key");
//     }
//     return rpc::Status::OK;
//   }
//
// Thread rule: a value type; one thread at a time, const use by many. An OK
// status costs no allocation.
#ifndef VERBENA_RPC_STATUS_H_
#define VERBENA_RPC_STATUS_H_

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"

namespace rpc {

enum StatusCode : int {
  OK = 0,
  // Cancelled, usually by the caller (TryCancel).
  CANCELLED = 1,
  UNKNOWN = 2,
  // The arguments are wrong whatever the state of the system.
  INVALID_ARGUMENT = 3,
  // The deadline passed first. The call may have done its work.
  DEADLINE_EXCEEDED = 4,
  NOT_FOUND = 5,
  ALREADY_EXISTS = 6,
  PERMISSION_DENIED = 7,
  // A quota, a limit of size, or memory is used up; the text names which.
  RESOURCE_EXHAUSTED = 8,
  // The system's state forbids it; trying again helps only once it changed.
  FAILED_PRECONDITION = 9,
  // Lost a race (a failed compare-and-swap): repeat at a higher level.
  ABORTED = 10,
  OUT_OF_RANGE = 11,
  // The server does not know the method.
  UNIMPLEMENTED = 12,
  // A broken invariant: bytes that do not parse, a peer that breaks the
  // protocol.
  INTERNAL = 13,
  // No connection, or it broke. Calls that must not run twice are not blindly
  // repeatable.
  UNAVAILABLE = 14,
  DATA_LOSS = 15,
  UNAUTHENTICATED = 16,

  DO_NOT_USE = -1,
};

// "NOT_FOUND"; "UNKNOWN" for what is not a code.
const char* StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  static const Status& OK;
  static const Status& CANCELLED;

  Status() = default;
  Status(StatusCode code, const std::string& error_message)
      : Status(code, error_message, std::string()) {}
  // `error_details` are bytes for the application, usually a serialized
  // google.rpc.Status. A client gets no text and no details with OK.
  Status(StatusCode code, const std::string& error_message,
         const std::string& error_details);

  // The details are the payload kDetailsPayload, where there is one.
  Status(const absl::Status& status);  // NOLINT(google-explicit-constructor)
  explicit operator absl::Status() const { return ToAbslStatus(); }
  absl::Status ToAbslStatus() const;

  // In line for `return Status::OK`, with which most handlers end.
  Status(const Status& other) : code_(other.code_) {
    if (other.text_ != nullptr) CopyText(*other.text_);
  }
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return code_ == StatusCode::OK; }
  StatusCode error_code() const { return code_; }
  std::string error_message() const {
    return text_ == nullptr ? std::string() : text_->message;
  }
  std::string error_details() const {
    return text_ == nullptr ? std::string() : text_->details;
  }

  // For callers that do not care how a call ended.
  void IgnoreError() const {}

  // "NOT_FOUND: no such key".
  std::string ToString() const;

  // The absl::Status payload that carries error_details().
  static constexpr char kDetailsPayload[] = "grpc-status-details-bin";

 private:
  struct Text {
    std::string message;
    std::string details;
  };

  void CopyText(const Text& text);

  StatusCode code_ = StatusCode::OK;
  std::unique_ptr<const Text> text_;  // null: both empty
};

std::ostream& operator<<(std::ostream& out, const Status& status);

}  // namespace rpc

#endif  // VERBENA_RPC_STATUS_H_
