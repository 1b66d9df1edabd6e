// Calls services from the command line. See `rpc_cli -help`, docs/rpc_cli.md.
#include <cstdio>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/rpc_cli/command_line.h"
#include "tools/rpc_cli/commands.h"
#include "tools/rpc_cli/exit_status.h"

int main(int argc, char** argv) {
  const absl::StatusOr<rpc_cli::CommandLine> line =
      rpc_cli::ParseCommandLine(argc, argv);
  if (line.ok()) return rpc_cli::RunCommand(*line);
  std::fputs(absl::StrCat("rpc_cli: ", line.status().message(),
                          "; see rpc_cli -help\n")
                 .c_str(),
             stderr);
  return rpc_cli::kUsage;
}
