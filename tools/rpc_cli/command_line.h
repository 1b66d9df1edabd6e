// rpc_cli's command line: what it may be, and what a given one says.
//
// Flags have names as grpcurl's, with one dash or two, anywhere on the line.
#ifndef VERBENA_TOOLS_RPC_CLI_COMMAND_LINE_H_
#define VERBENA_TOOLS_RPC_CLI_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rpc/channel_arguments.h"
#include "tools/rpc_cli/json_codec.h"
#include "tools/rpc_cli/metadata.h"

namespace rpc_cli {

struct CommandLine {
  enum class Command { kHelp, kList, kDescribe, kCall };

  Command command = Command::kHelp;
  std::string address;
  std::string name;  // a service, a symbol, a method; empty: none is given

  // Messages; "@": standard input. Nothing: what the method's kind calls for.
  std::optional<std::string> data;
  Metadata metadata;
  std::optional<absl::Duration> max_time;
  JsonOptions json;
  bool verbose = false;
  std::vector<std::string> proto_files;  // none: ask the server
  std::vector<std::string> import_paths;
  rpc::ChannelArguments channel_arguments;
};

// INVALID_ARGUMENT says what is wrong and what to write. One thread at a time.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, char** argv);

// All of the help.
extern const char kUsageText[];

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_COMMAND_LINE_H_
