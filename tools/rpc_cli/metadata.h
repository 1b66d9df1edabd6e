// Metadata as a user writes and reads it. Values of keys in "-bin" are bytes:
// they are base64 here.
#ifndef VERBENA_TOOLS_RPC_CLI_METADATA_H_
#define VERBENA_TOOLS_RPC_CLI_METADATA_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/metadata.h"

namespace rpc_cli {

using Metadata = std::vector<std::pair<std::string, std::string>>;

// "key: value" as a pair for ClientContext::AddMetadata. Capitals in the key
// become small letters. INVALID_ARGUMENT says what is wrong.
absl::StatusOr<Metadata::value_type> ParseHeader(const std::string& header);

// One line for each pair, "  key: value\n"; where there is none, says so.
std::string FormatMetadata(const Metadata& metadata);
std::string FormatMetadata(const rpc::ReceivedMetadataMap& metadata);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_METADATA_H_
