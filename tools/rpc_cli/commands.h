// What rpc_cli does.
#ifndef VERBENA_TOOLS_RPC_CLI_COMMANDS_H_
#define VERBENA_TOOLS_RPC_CLI_COMMANDS_H_

#include "tools/rpc_cli/command_line.h"

namespace rpc_cli {

// Does what `line` says: answers go to standard output, errors and remarks to
// standard error. Returns the program's exit status. In a process of its own:
// it may read standard input.
int RunCommand(const CommandLine& line);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_COMMANDS_H_
