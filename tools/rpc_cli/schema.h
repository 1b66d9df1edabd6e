// What a server serves: its services, and the types that they take. From the
// server itself (reflection_schema.h), or from .proto files
// (proto_file_schema.h).
//
// Thread rule: one thread at a time; any number of them use the pool.
#ifndef VERBENA_TOOLS_RPC_CLI_SCHEMA_H_
#define VERBENA_TOOLS_RPC_CLI_SCHEMA_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"

namespace rpc_cli {

class Schema {
 public:
  virtual ~Schema() = default;

  // Full names, sorted.
  virtual absl::StatusOr<std::vector<std::string>> ServiceNames() = 0;

  // All that is known, or can be learned when it is looked up.
  virtual const google::protobuf::DescriptorPool* pool() const = 0;

  // Not OK where a lookup in the pool found nothing, or may have, for another
  // reason than that there is nothing: which.
  virtual absl::Status LookupError() const { return absl::OkStatus(); }
};

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_SCHEMA_H_
