// The method that nobody has: what serves its calls where they are to be served
// at all, because the server's interceptors see them.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_INTERNAL_UNKNOWN_METHOD_H_
#define VERBENA_RPC_INTERNAL_UNKNOWN_METHOD_H_

#include <memory>

#include "rpc/internal/method_handler.h"

namespace rpc::internal {

// Its calls end with UNIMPLEMENTED, without a text, as those that the transport
// ends.
std::shared_ptr<MethodHandler> UnknownMethod();

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_UNKNOWN_METHOD_H_
