#include "tools/rpc_cli/exit_status.h"

#include "absl/strings/cord.h"

namespace rpc_cli {
namespace {

constexpr char kCallPayload[] = "rpc_cli.call";

}  // namespace

absl::Status CallError(const rpc::Status& status) {
  absl::Status error = status.ToAbslStatus();
  error.SetPayload(kCallPayload, absl::Cord());
  return error;
}

bool IsCallError(const absl::Status& status) {
  return status.GetPayload(kCallPayload).has_value();
}

int ExitStatusOf(const absl::Status& status) {
  if (status.ok()) return kDone;
  if (!IsCallError(status)) return kFailed;
  return kCallFailed + static_cast<int>(status.code());
}

}  // namespace rpc_cli
