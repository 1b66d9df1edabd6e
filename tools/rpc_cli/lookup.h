// Finds what a user names, and says what else there is where it is not found.
//
// Errors: those of the schema, and NOT_FOUND with names that are near.
#ifndef VERBENA_TOOLS_RPC_CLI_LOOKUP_H_
#define VERBENA_TOOLS_RPC_CLI_LOOKUP_H_

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "tools/rpc_cli/schema.h"

namespace rpc_cli {

absl::StatusOr<const google::protobuf::ServiceDescriptor*> FindService(
    Schema& schema, const std::string& name);

// `name`: package.Service/Method, package.Service.Method, or a path,
// /package.Service/Method. INVALID_ARGUMENT: it is none of these.
absl::StatusOr<const google::protobuf::MethodDescriptor*> FindMethod(
    Schema& schema, const std::string& name);

// What `name` is and its text as in a .proto file: a service, a method (in any
// of the above forms), a message, an enumeration, a value of one, a field, an
// extension. Ends with a newline.
absl::StatusOr<std::string> Describe(Schema& schema, const std::string& name);

// "e2e.Streams.Count(.e2e.Order) returns (stream .e2e.Item)".
std::string Signature(const google::protobuf::MethodDescriptor& method);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_LOOKUP_H_
