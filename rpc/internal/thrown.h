// What a user's function threw: a handler's ends its call, a callback's is left
// behind, as in gRPC, and the process goes on.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_INTERNAL_THROWN_H_
#define VERBENA_RPC_INTERNAL_THROWN_H_

#include <exception>
#include <string_view>

#include "rpc/status.h"

namespace rpc::internal {

// At level error; `who` is "a handler".
void LogThrown(std::string_view who, const std::exception_ptr& error);

// UNKNOWN. What was thrown is for the server's log; it may be nothing for
// clients.
Status StatusOfThrown(const std::exception_ptr& error);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_THROWN_H_
