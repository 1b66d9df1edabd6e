// A call of any kind, of a method whose types are known at run time only.
#ifndef VERBENA_TOOLS_RPC_CLI_CALL_H_
#define VERBENA_TOOLS_RPC_CLI_CALL_H_

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "rpc/channel_interface.h"
#include "tools/rpc_cli/json_codec.h"
#include "tools/rpc_cli/message_input.h"
#include "tools/rpc_cli/metadata.h"

namespace rpc_cli {

struct CallOptions {
  Metadata metadata;
  absl::Time deadline = absl::InfiniteFuture();
  // Takes each message that comes, as JSON. An error ends the call.
  std::function<absl::Status(std::string_view json)> show;
  // Takes what -v is to say, in lines.
  std::function<void(std::string_view text)> remark;
};

// Blocks until the call is over. A stream's messages are sent as `input` gives
// them, by a thread of their own, while others come.
//
// Errors: the call's (exit_status.h); and where it was not made, or ended
// early, for a reason of this side: INVALID_ARGUMENT (the input does not fit
// the method), INTERNAL (a message cannot be shown), or what `show` gave.
absl::Status MakeCall(const std::shared_ptr<rpc::ChannelInterface>& channel,
                      const google::protobuf::MethodDescriptor& method,
                      const JsonCodec& codec, MessageInput& input,
                      const CallOptions& options);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_CALL_H_
