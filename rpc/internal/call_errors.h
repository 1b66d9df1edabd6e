// How calls end that nobody else gives a status for: the same for unary calls
// and streams.
//
// Out of line, as no call that goes well needs them.
#ifndef VERBENA_RPC_INTERNAL_CALL_ERRORS_H_
#define VERBENA_RPC_INTERNAL_CALL_ERRORS_H_

#include "rpc/status.h"

namespace rpc::internal {

Status ContextServedBefore();
Status CancelledBefore();
// By TryCancel, as it began.
Status Cancelled();
// The server's one response is missing.
Status NoResponse();
// The same on the server: its handler said OK, and wrote none.
Status NothingWritten();
// The transport closed the call in order, and the server gave no status.
Status NoStatus();

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_CALL_ERRORS_H_
