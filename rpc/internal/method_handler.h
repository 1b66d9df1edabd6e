// What a service registers for a method: it makes the state of the method's
// calls.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_INTERNAL_METHOD_HANDLER_H_
#define VERBENA_RPC_INTERNAL_METHOD_HANDLER_H_

namespace rpc {
class ContextAllocator;
}  // namespace rpc

namespace rpc::internal {

class ServerCall;

class MethodHandler {
 public:
  virtual ~MethodHandler() = default;

  // The caller owns it. Not for every call: calls are used again.
  virtual ServerCall* NewCall() = 0;
  // One that takes its context from `allocator`, and is not used again; of a
  // handler with a CallbackServerContext. Others have their own.
  virtual ServerCall* NewCallWith(ContextAllocator& /*allocator*/) {
    return NewCall();
  }

  // Whether nothing of the user's runs, and nothing blocks, where its calls
  // come in: any thread can be asked to take them in.
  virtual bool IsQuick() const { return false; }

  // Whether its calls parse their one message where they come in, by protobuf.
  virtual bool ParsesWhatArrives() const { return false; }

  // The server shuts down: calls that nobody serves yet are to be refused.
  virtual void Shutdown() {}
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_METHOD_HANDLER_H_
