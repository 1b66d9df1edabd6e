// How rpc_cli ends. Inside, everything that can fail gives an absl::Status; one
// that a server or the way to it gave is marked, and keeps its code to the end.
#ifndef VERBENA_TOOLS_RPC_CLI_EXIT_STATUS_H_
#define VERBENA_TOOLS_RPC_CLI_EXIT_STATUS_H_

#include "absl/status/status.h"
#include "rpc/status.h"

namespace rpc_cli {

// The program's exit status. Part of its interface: scripts rely on them.
enum ExitStatus : int {
  kDone = 0,
  kFailed = 1,       // nothing was called, or its answer could not be shown
  kUsage = 2,        // wrong command line, address or channel argument
  kCallFailed = 64,  // and the call's status code added: 78 is UNAVAILABLE
};

// Of a call that ended with `status`, not OK.
absl::Status CallError(const rpc::Status& status);
bool IsCallError(const absl::Status& status);

int ExitStatusOf(const absl::Status& status);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_EXIT_STATUS_H_
