// What .proto files say that a server serves.
#ifndef VERBENA_TOOLS_RPC_CLI_PROTO_FILE_SCHEMA_H_
#define VERBENA_TOOLS_RPC_CLI_PROTO_FILE_SCHEMA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/rpc_cli/schema.h"

namespace rpc_cli {

// Reads `files` and what they import. They, and what they import, are looked
// for in `import_paths`, in the order given; none: the working directory. The
// files that come with protobuf need not be there. INVALID_ARGUMENT: a file is
// missing or wrong; the text has a line for each mistake.
absl::StatusOr<std::unique_ptr<Schema>> LoadProtoFiles(
    const std::vector<std::string>& files,
    const std::vector<std::string>& import_paths);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_PROTO_FILE_SCHEMA_H_
