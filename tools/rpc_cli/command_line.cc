#include "tools/rpc_cli/command_line.h"

#include <getopt.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rpc_cli {

const char kUsageText[] =
    R"(Calls services of Verbena from the command line, without their .proto files:
the server says by reflection what it has.

    rpc_cli list ADDRESS [SERVICE]         its services, or a service's methods
    rpc_cli describe ADDRESS [SYMBOL]      all services, or one service, method,
                                           message, field, ... as in a .proto file
    rpc_cli call ADDRESS SERVICE/METHOD    calls it: JSON in, JSON out

ADDRESS is rdma://HOST:PORT or HOST:PORT. SERVICE.METHOD and /SERVICE/METHOD are
the same as SERVICE/METHOD.

Messages of a call:
    -d DATA             the message as JSON; of a stream, one after the other; @:
                        they are read from standard input as they come. Without
                        it, a method that takes one message gets an empty one,
                        and one that takes a stream gets standard input
    -compact            an answer's message is one line
    -emit-defaults      also fields that have their default value

About a call, also those of reflection:
    -H 'KEY: VALUE'     metadata, any number of them; where KEY ends in -bin,
                        VALUE is base64
    -max-time SECONDS   when to give up; default: never
    -v                  say on standard error what is called, the metadata of
                        both sides, and how long it took
    -channel-arg NAME=VALUE
                        an option of the channel, as in rpc/channel_arguments.h:
                        -channel-arg verbena.device=soft

Instead of reflection:
    -proto FILE         a .proto file of the services; any number of them
    -import-path DIR    where it, and what it imports, is; any number of them,
                        default: the working directory

Exit status:
    0        done
    1        nothing was called: there is no such service or method, the data
             does not fit, the server has no reflection; or an answer could not
             be shown
    2        wrong command line, address or channel argument
    64 + N   a call ended with status code N, as gRPC numbers them: 68 is
             DEADLINE_EXCEEDED, 69 NOT_FOUND, 78 UNAVAILABLE

Example:
    rpc_cli call 127.0.0.1:50051 hello.Greeter/SayHello -d '{"name": "World"}'
)";

namespace {

using Command = CommandLine::Command;

enum Flag : int {
  kHelp = 1,
  kData,
  kHeader,
  kMaxTime,
  kVerbose,
  kCompact,
  kEmitDefaults,
  kChannelArgument,
  kProto,
  kImportPath,
};

constexpr option kFlags[] = {
    {"h", no_argument, nullptr, kHelp},
    {"help", no_argument, nullptr, kHelp},
    {"d", required_argument, nullptr, kData},
    {"H", required_argument, nullptr, kHeader},
    {"max-time", required_argument, nullptr, kMaxTime},
    {"v", no_argument, nullptr, kVerbose},
    {"compact", no_argument, nullptr, kCompact},
    {"emit-defaults", no_argument, nullptr, kEmitDefaults},
    {"channel-arg", required_argument, nullptr, kChannelArgument},
    {"proto", required_argument, nullptr, kProto},
    {"import-path", required_argument, nullptr, kImportPath},
    {},
};

template <class... Words>
absl::Status Wrong(const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat(words...));
}

absl::Status ParseMaxTime(const char* text, CommandLine& line) {
  double seconds;
  // A NaN is not above 0 either.
  if (!absl::SimpleAtod(text, &seconds) || !(seconds > 0)) {
    return Wrong("-max-time ", text, ": it is a number of seconds above 0");
  }
  line.max_time = absl::Seconds(seconds);
  return absl::OkStatus();
}

absl::Status ParseChannelArgument(const std::string& text, CommandLine& line) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Wrong("-channel-arg ", text, ": write NAME=VALUE");
  }
  const std::string name = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  int64_t number;
  if (absl::SimpleAtoi(value, &number)) {
    line.channel_arguments.SetInt64(name, number);
  } else {
    line.channel_arguments.SetString(name, value);
  }
  return absl::OkStatus();
}

absl::Status ParseHeaderFlag(const std::string& text, CommandLine& line) {
  auto pair = ParseHeader(text);
  if (!pair.ok()) return pair.status();
  line.metadata.push_back(*std::move(pair));
  return absl::OkStatus();
}

// optarg is the flag's value.
absl::Status ApplyFlag(int flag, CommandLine& line, bool& help) {
  switch (flag) {
    case kHelp:
      help = true;
      break;
    case kData:
      line.data = optarg;
      break;
    case kHeader:
      return ParseHeaderFlag(optarg, line);
    case kMaxTime:
      return ParseMaxTime(optarg, line);
    case kVerbose:
      line.verbose = true;
      break;
    case kCompact:
      line.json.compact = true;
      break;
    case kEmitDefaults:
      line.json.emit_defaults = true;
      break;
    case kChannelArgument:
      return ParseChannelArgument(optarg, line);
    case kProto:
      line.proto_files.emplace_back(optarg);
      break;
    case kImportPath:
      line.import_paths.emplace_back(optarg);
      break;
  }
  return absl::OkStatus();
}

absl::Status ApplyWords(const std::vector<std::string>& words,
                        CommandLine& line) {
  static const auto* const commands = new std::map<std::string, Command>{
      {"list", Command::kList},
      {"describe", Command::kDescribe},
      {"call", Command::kCall},
      {"help", Command::kHelp},
  };
  if (words.empty()) return Wrong("no command");
  const auto command = commands->find(words[0]);
  if (command == commands->end()) {
    return Wrong("there is no command '", words[0], "'");
  }
  line.command = command->second;
  if (line.command == Command::kHelp) return absl::OkStatus();
  if (words.size() < 2) return Wrong(words[0], ": which ADDRESS?");
  if (words.size() > 3) return Wrong(words[0], ": what is '", words[3], "'?");
  line.address = words[1];
  if (words.size() > 2) line.name = words[2];
  return absl::OkStatus();
}

absl::Status Check(const CommandLine& line) {
  if (line.command == Command::kHelp) return absl::OkStatus();
  if (line.command != Command::kCall && line.data.has_value()) {
    return Wrong("-d is for call alone");
  }
  if (line.command == Command::kCall && line.name.empty()) {
    return Wrong("call ", line.address, ": which SERVICE/METHOD?");
  }
  if (!line.import_paths.empty() && line.proto_files.empty()) {
    return Wrong("-import-path without -proto FILE");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  bool help = false;
  optind = 0;  // glibc: from the start, also the second time
  opterr = 0;
  int flag;
  // ":": a missing value is another result than an unknown flag.
  while ((flag = getopt_long_only(argc, argv, ":", kFlags, nullptr)) != -1) {
    if (flag == '?') return Wrong("unknown flag ", argv[optind - 1]);
    if (flag == ':') return Wrong(argv[optind - 1], " needs a value");
    absl::Status status = ApplyFlag(flag, line, help);
    if (!status.ok()) return status;
  }
  if (help) return CommandLine();
  absl::Status status = ApplyWords({argv + optind, argv + argc}, line);
  if (status.ok()) status = Check(line);
  if (!status.ok()) return status;
  return line;
}

}  // namespace rpc_cli
