// The messages that a user gives, each as JSON: from the command line, or from
// a file descriptor, as they come.
//
//   MessageInput input(STDIN_FILENO);
//   while (true) {
//     absl::StatusOr<std::optional<std::string>> json = input.Next();
//     if (!json.ok() || !json->has_value()) break;
//     ...
//   }
//
// Thread rule: one thread at a time; Interrupt may be called from any thread.
#ifndef VERBENA_TOOLS_RPC_CLI_MESSAGE_INPUT_H_
#define VERBENA_TOOLS_RPC_CLI_MESSAGE_INPUT_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/rpc_cli/json_splitter.h"

namespace rpc_cli {

class MessageInput {
 public:
  // All of it.
  explicit MessageInput(std::string_view text);
  // What `fd`, which stays the caller's, gives until its end.
  explicit MessageInput(int fd);
  ~MessageInput();
  MessageInput(const MessageInput&) = delete;
  MessageInput& operator=(const MessageInput&) = delete;

  // Blocks until a message is complete. Nothing: there is no further one, or
  // Interrupt was called. An error: it cannot be read, or ends within a value.
  absl::StatusOr<std::optional<std::string>> Next();

  // How many Next has given.
  int count() const { return count_; }

  // Next gives nothing from now on, also where it waits already.
  void Interrupt();

 private:
  enum class Read { kSome, kEnd, kInterrupted };
  absl::StatusOr<Read> ReadSome();

  const int fd_;     // -1: none
  const int event_;  // an eventfd, readable once interrupted
  bool ended_ = false;
  int count_ = 0;
  JsonSplitter splitter_;
};

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_MESSAGE_INPUT_H_
