// `kv`, the command-line client of the key-value service. See `kv --help`.
#include <gflags/gflags.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "examples/kv/client.h"
#include "examples/kv/command.h"
#include "examples/kv/store_commands.h"
#include "examples/kv/stream_commands.h"
#include "examples/kv/tree_commands.h"
#include "examples/kv/value_commands.h"

DEFINE_string(address, "rdma://127.0.0.1:50051", "the server's address");
DEFINE_string(device, "auto",
              "\"auto\", \"soft\" (the software device, same host), or a verbs "
              "device's name");
DEFINE_double(timeout_seconds, 30,
              "for each call; values get a second for every 10 MB on top, and "
              "get 27 s, as it does not know how large the value is");
DEFINE_bool(allow_other_users, false,
            "on the software device: the server may be another user's (it "
            "needs --allow_other_users, too)");
DEFINE_bool(json, false,
            "list, stats, watch, load, verify: print JSON, one object a line");

DECLARE_bool(help);
DECLARE_bool(helpshort);

namespace kv {
namespace {

constexpr std::array<const Command*, 9> kCommands = {
    &kGetCommand,    &kPutCommand,   &kDeleteCommand,
    &kListCommand,   &kStatsCommand, &kWatchCommand,
    &kUploadCommand, &kLoadCommand,  &kVerifyCommand};

const Command* FindCommand(std::string_view name) {
  for (const Command* command : kCommands) {
    if (command->name == name) return command;
  }
  return nullptr;
}

// The flags of this program, without those of its libraries.
void PrintFlags() {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  absl::PrintF("Flags (anywhere on the command line; after -- none is one):\n");
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (flag.filename.find("examples/kv/") == std::string::npos) continue;
    const std::string value =
        flag.default_value.empty() ? "" : "=" + flag.default_value;
    absl::PrintF("  --%s%s\n        %s\n", flag.name, value, flag.description);
  }
}

void PrintUsage() {
  absl::PrintF(
      "kv talks to a kv_server: keys and values of any bytes, over RDMA.\n\n"
      "Usage: kv [FLAGS] COMMAND ...\n\nCommands:\n");
  for (const Command* command : kCommands) {
    absl::PrintF("  %s %s\n        %s\n", std::string(command->name),
                 std::string(command->arguments),
                 std::string(command->summary));
  }
  absl::PrintF("  help COMMAND\n        says more about a command\n\n");
  PrintFlags();
  absl::PrintF(
      "\nExit status:\n"
      "  0  done\n"
      "  1  wrong command line, address or device\n"
      "  2  no such key, another version, or a difference found\n"
      "  3  no server there, or it went away, or took too long\n"
      "  4  the server refused: its memory limit, too long a key\n"
      "  5  a local file could not be read or written\n\n"
      "Example:\n"
      "  kv_server --address=rdma://127.0.0.1:50051 &\n"
      "  kv load /usr/include && kv verify /usr/include\n");
}

ExitCode PrintHelp(const Arguments& arguments) {
  if (arguments.empty()) {
    PrintUsage();
    return kExitOk;
  }
  const Command* command = FindCommand(arguments[0]);
  if (command == nullptr) {
    PrintError(absl::StrCat("there is no command '", arguments[0],
                            "': see kv --help"));
    return kExitUsage;
  }
  absl::PrintF("kv %s %s\n\n%s.\n%s%s", std::string(command->name),
               std::string(command->arguments), std::string(command->summary),
               std::string(command->details),
               command->details.empty() ? "" : "\n");
  return kExitOk;
}

ExitCode WrongArguments(const Command& command) {
  PrintError(absl::StrCat("usage: kv ", std::string(command.name), " ",
                          std::string(command.arguments)));
  return kExitUsage;
}

// A flag's description begins with the commands that take it ("put: the file"),
// or with none where all do.
bool Takes(std::string_view command, const std::string& description) {
  const size_t colon = description.find(':');
  if (colon == std::string::npos) return true;
  const std::vector<std::string> takers =
      absl::StrSplit(description.substr(0, colon), ", ");
  for (const std::string& taker : takers) {
    if (FindCommand(taker) == nullptr) return true;
    if (taker == command) return true;
  }
  return false;
}

// Says which flag on the command line is another command's.
bool CheckFlags(std::string_view command) {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (flag.is_default || Takes(command, flag.description)) continue;
    PrintError(absl::StrCat("kv ", std::string(command), " takes no --",
                            flag.name, ": see kv --help"));
    return false;
  }
  return true;
}

ExitCode Run(const Arguments& words) {
  if (words.empty()) {
    PrintError("no command: see kv --help");
    return kExitUsage;
  }
  const Arguments arguments(words.begin() + 1, words.end());
  if (words[0] == "help") return PrintHelp(arguments);
  const Command* command = FindCommand(words[0]);
  if (command == nullptr) {
    PrintError(
        absl::StrCat("there is no command '", words[0], "': see kv --help"));
    return kExitUsage;
  }
  if (!CheckFlags(command->name)) return kExitUsage;
  const int count = static_cast<int>(arguments.size());
  if (count < command->min_arguments || count > command->max_arguments) {
    return WrongArguments(*command);
  }
  if (!(FLAGS_timeout_seconds > 0)) {
    PrintError("--timeout_seconds must be more than 0");
    return kExitUsage;
  }
  Client client({.address = FLAGS_address,
                 .device = FLAGS_device,
                 .timeout = absl::Seconds(FLAGS_timeout_seconds),
                 .allow_other_users = FLAGS_allow_other_users});
  return command->run(client, arguments);
}

}  // namespace
}  // namespace kv

int main(int argc, char** argv) {
  gflags::ParseCommandLineNonHelpFlags(&argc, &argv, /*remove_flags=*/true);
  if (FLAGS_help || FLAGS_helpshort) {
    return kv::PrintHelp({argv + 1, argv + argc});
  }
  gflags::HandleCommandLineHelpFlags();
  return kv::Run({argv + 1, argv + argc});
}
