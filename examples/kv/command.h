// What the commands of the `kv` client have in common: arguments, exit codes
// and the way errors are told.
#ifndef VERBENA_EXAMPLES_KV_COMMAND_H_
#define VERBENA_EXAMPLES_KV_COMMAND_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "examples/kv/client.h"

namespace kv {

// The exit status of `kv`. Part of its interface: scripts rely on them.
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage =
      1,  // wrong command line, address or device (gflags exits so too)
  kExitNegative = 2,  // the answer is no: no such key, lost the race, differs
  kExitUnreachable = 3,  // no server there, or it went away, or is too slow
  kExitRefused = 4,      // the server refused: memory limit, too long a key
  kExitLocal = 5,  // a local file or directory could not be read or written
};

using Arguments = std::vector<std::string>;

// For Command::max_arguments.
inline constexpr int kAnyNumber = 1 << 30;

// One command: its arguments are those after its name.
struct Command {
  std::string_view name;
  std::string_view arguments;  // for the usage: "KEY [VALUE]"
  std::string_view summary;    // one line
  std::string_view details;    // the rest of its help
  int min_arguments;
  int max_arguments;
  ExitCode (*run)(Client& client, const Arguments& arguments);
};

// Prints "kv: TEXT" to stderr.
void PrintError(std::string_view text);

// Prints an error of a call and returns the exit code for it.
ExitCode CallFailed(const absl::Status& status);

// Prints an error of a local file and returns kExitLocal.
ExitCode FileFailed(const absl::Status& status);

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_COMMAND_H_
