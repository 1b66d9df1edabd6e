// What a server says of itself by server reflection, asked for as it is needed.
#ifndef VERBENA_TOOLS_RPC_CLI_REFLECTION_SCHEMA_H_
#define VERBENA_TOOLS_RPC_CLI_REFLECTION_SCHEMA_H_

#include <memory>

#include "absl/time/time.h"
#include "rpc/channel_interface.h"
#include "tools/rpc_cli/metadata.h"
#include "tools/rpc_cli/schema.h"

namespace rpc_cli {

struct ReflectionOptions {
  Metadata metadata;  // of each call
  // When to give up altogether; besides, no call takes more than `call_time`.
  absl::Time deadline = absl::InfiniteFuture();
  absl::Duration call_time = absl::Seconds(20);
};

// Asks nothing yet. Errors come later, as those of calls (exit_status.h); a
// server without reflection is FAILED_PRECONDITION, and no call's error.
std::unique_ptr<Schema> MakeReflectionSchema(
    std::shared_ptr<rpc::ChannelInterface> channel, ReflectionOptions options);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_REFLECTION_SCHEMA_H_
