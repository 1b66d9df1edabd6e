// The plugin's parameters: what follows --rpc_out= in front of the colon, or
// what --rpc_opt= gives.
//
//   protoc --rpc_out=services_namespace=grpc_like:out foo.proto
//
// Thread rule: a value.
#ifndef VERBENA_RPC_COMPILER_PARAMETERS_H_
#define VERBENA_RPC_COMPILER_PARAMETERS_H_

#include <string>

#include "absl/status/statusor.h"

namespace rpc::compiler {

struct Parameters {
  // A namespace inside the package's for the generated services; "" for none.
  // Of use where protoc's own generic services take the names (the file option
  // cc_generic_services).
  std::string services_namespace;
  // Whether mocks of the stubs are generated, too: foo_mock.rpc.pb.h.
  bool generate_mock_code = false;
};

// INVALID_ARGUMENT: an unknown parameter or a value that is none; the text
// names it and lists those that exist.
absl::StatusOr<Parameters> ParseParameters(const std::string& text);

}  // namespace rpc::compiler

#endif  // VERBENA_RPC_COMPILER_PARAMETERS_H_
