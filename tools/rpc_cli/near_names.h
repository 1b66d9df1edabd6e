// Names that a user may have meant.
#ifndef VERBENA_TOOLS_RPC_CLI_NEAR_NAMES_H_
#define VERBENA_TOOLS_RPC_CLI_NEAR_NAMES_H_

#include <string>
#include <vector>

namespace rpc_cli {

// Those of `known` that are like `name` but for a few letters, or for what
// stands before the last dot; the most similar first, five at most.
std::vector<std::string> NearNames(const std::string& name,
                                   const std::vector<std::string>& known);

// The end of an error about `name`: "; near it: a.B, a.C", or what there is.
std::string Suggestion(const std::string& name,
                       const std::vector<std::string>& known);

}  // namespace rpc_cli

#endif  // VERBENA_TOOLS_RPC_CLI_NEAR_NAMES_H_
