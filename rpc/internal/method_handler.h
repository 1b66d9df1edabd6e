// What a service registers for a method: it makes the state of the method's
// calls.
//
// Thread rule: NewCall from any thread.
#ifndef VERBENA_RPC_INTERNAL_METHOD_HANDLER_H_
#define VERBENA_RPC_INTERNAL_METHOD_HANDLER_H_

namespace rpc::internal {

class ServerCall;

class MethodHandler {
 public:
  virtual ~MethodHandler() = default;

  // The caller owns it. Not for every call: calls are used again.
  virtual ServerCall* NewCall() = 0;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_METHOD_HANDLER_H_
