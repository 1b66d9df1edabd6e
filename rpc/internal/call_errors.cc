#include "rpc/internal/call_errors.h"

namespace rpc::internal {

Status ContextServedBefore() {
  return Status(StatusCode::FAILED_PRECONDITION,
                "this ClientContext has served a call before; each call needs "
                "one of its own");
}

Status CancelledBefore() {
  return Status(StatusCode::CANCELLED, "Cancelled before the call began");
}

Status Cancelled() { return Status(StatusCode::CANCELLED, "CANCELLED"); }

Status NoResponse() {
  return Status(StatusCode::UNIMPLEMENTED,
                "No message returned for unary request");
}

Status NothingWritten() {
  return Status(StatusCode::INTERNAL,
                "the handler of a call that has one response wrote none");
}

Status NoStatus() {
  return Status(StatusCode::INTERNAL,
                "the call ended without a status from the server");
}

}  // namespace rpc::internal
