#include "tools/rpc_cli/commands.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "rpc/rpc.h"
#include "tools/rpc_cli/call.h"
#include "tools/rpc_cli/exit_status.h"
#include "tools/rpc_cli/lookup.h"
#include "tools/rpc_cli/message_input.h"
#include "tools/rpc_cli/proto_file_schema.h"
#include "tools/rpc_cli/reflection_schema.h"
#include "tools/rpc_cli/schema.h"

namespace rpc_cli {
namespace {

using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

void Remark(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

// At once: whoever reads a stream's messages may have the next to say.
absl::Status Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  if (std::fflush(stdout) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "standard output cannot be written");
}

// One run of the program.
class CommandRun {
 public:
  explicit CommandRun(const CommandLine& line)
      : line_(line),
        deadline_(line.max_time.has_value() ? absl::Now() + *line.max_time
                                            : absl::InfiniteFuture()),
        channel_(rpc::CreateCustomChannel(line.address,
                                          rpc::InsecureChannelCredentials(),
                                          line.channel_arguments)) {}

  int Run() {
    // Where address or arguments are wrong, there is no transport.
    const rpc::internal::CallTarget& target = channel_->call_target();
    if (target.transport == nullptr) {
      Remark(absl::StrCat("rpc_cli: ", target.error.error_message(), "\n"));
      return kUsage;
    }
    absl::Status status = MakeSchema();
    if (status.ok()) status = RunWithSchema();
    if (!status.ok()) Complain(status);
    return ExitStatusOf(status);
  }

 private:
  absl::Status MakeSchema() {
    if (line_.proto_files.empty()) {
      schema_ = MakeReflectionSchema(
          channel_, {.metadata = line_.metadata, .deadline = deadline_});
      return absl::OkStatus();
    }
    absl::StatusOr<std::unique_ptr<Schema>> loaded =
        LoadProtoFiles(line_.proto_files, line_.import_paths);
    if (!loaded.ok()) return loaded.status();
    schema_ = *std::move(loaded);
    return absl::OkStatus();
  }

  absl::Status RunWithSchema() {
    switch (line_.command) {
      case CommandLine::Command::kList:
        return line_.name.empty() ? ListServices() : ListMethods();
      case CommandLine::Command::kDescribe:
        return line_.name.empty() ? DescribeServices() : DescribeSymbol();
      case CommandLine::Command::kCall:
        return CallMethod();
      case CommandLine::Command::kHelp:
        break;
    }
    return absl::OkStatus();
  }

  absl::Status ListServices() {
    const absl::StatusOr<std::vector<std::string>> names =
        schema_->ServiceNames();
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      absl::Status status = Print(name);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ListMethods() {
    const absl::StatusOr<const ServiceDescriptor*> service =
        FindService(*schema_, line_.name);
    if (!service.ok()) return service.status();
    for (int i = 0; i < (*service)->method_count(); ++i) {
      const MethodDescriptor& method = *(*service)->method(i);
      absl::Status status =
          Print(absl::StrCat((*service)->full_name(), "/", method.name()));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status DescribeServices() {
    const absl::StatusOr<std::vector<std::string>> names =
        schema_->ServiceNames();
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      absl::Status status = DescribeOne(name);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status DescribeSymbol() { return DescribeOne(line_.name); }

  absl::Status DescribeOne(const std::string& name) {
    const absl::StatusOr<std::string> text = Describe(*schema_, name);
    if (!text.ok()) return text.status();
    return Print(std::string(absl::StripSuffix(*text, "\n")));
  }

  absl::Status CallMethod() {
    const absl::StatusOr<const MethodDescriptor*> method =
        FindMethod(*schema_, line_.name);
    if (!method.ok()) return method.status();
    const JsonCodec codec(schema_->pool(), line_.json);
    const std::unique_ptr<MessageInput> input = Input(**method);
    CallOptions options = {.metadata = line_.metadata,
                           .deadline = deadline_,
                           .show = Print,
                           .remark = [](std::string_view) {}};
    if (line_.verbose) options.remark = Remark;
    absl::Status status = MakeCall(channel_, **method, codec, *input, options);
    options.remark(absl::StrCat("Device: ", channel_->device(), "\n"));
    return status;
  }

  std::unique_ptr<MessageInput> Input(const MethodDescriptor& method) const {
    const bool standard_input =
        line_.data.has_value() ? *line_.data == "@" : method.client_streaming();
    if (standard_input) return std::make_unique<MessageInput>(STDIN_FILENO);
    return std::make_unique<MessageInput>(line_.data.value_or(""));
  }

  void Complain(const absl::Status& status) const {
    if (!IsCallError(status)) {
      Remark(absl::StrCat("rpc_cli: ", status.message(), "\n"));
      return;
    }
    const rpc::Status call(status);
    Remark(
        absl::StrCat("rpc_cli: ", line_.address, ": ", call.ToString(), "\n"));
    const std::string details = call.error_details();
    if (details.empty()) return;
    Remark(absl::StrCat("details, ", details.size(), " bytes as base64: ",
                        absl::Base64Escape(details), "\n"));
  }

  const CommandLine& line_;
  const absl::Time deadline_;
  const std::shared_ptr<rpc::Channel> channel_;
  std::unique_ptr<Schema> schema_;
};

}  // namespace

int RunCommand(const CommandLine& line) {
  if (line.command != CommandLine::Command::kHelp)
    return CommandRun(line).Run();
  std::fputs(kUsageText, stdout);
  return kDone;
}

}  // namespace rpc_cli
