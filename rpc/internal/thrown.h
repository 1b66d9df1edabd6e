// What a handler threw: it ends its call, as in gRPC, and not the process.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_INTERNAL_THROWN_H_
#define VERBENA_RPC_INTERNAL_THROWN_H_

#include <exception>

#include "rpc/status.h"

namespace rpc::internal {

// UNKNOWN. What was thrown is for the server's log; it may be nothing for
// clients.
Status StatusOfThrown(const std::exception_ptr& error);

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_THROWN_H_
