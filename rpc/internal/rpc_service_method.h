// A method of a service, and what handles its calls. Used by generated code.
//
// Thread rule: one thread at a time, while the service is set up; then
// immutable.
#ifndef VERBENA_RPC_INTERNAL_RPC_SERVICE_METHOD_H_
#define VERBENA_RPC_INTERNAL_RPC_SERVICE_METHOD_H_

#include <memory>

#include "rpc/internal/method_handler.h"
#include "rpc/internal/rpc_method.h"

namespace rpc::internal {

class RpcServiceMethod : public RpcMethod {
 public:
  enum class ApiType { kSync, kAsync, kCallback, kGeneric };

  // Takes over `handler`. `name` and `messages` have static storage.
  RpcServiceMethod(const char* name, RpcType type, MethodHandler* handler,
                   const MethodMessages& messages = kAnyMessages)
      : RpcMethod(name, type, messages), handler_(handler) {}

  MethodHandler* handler() const { return handler_.get(); }
  // For a server, which may end after the service.
  const std::shared_ptr<MethodHandler>& shared_handler() const {
    return handler_;
  }
  ApiType api_type() const { return api_type_; }
  void SetHandler(ApiType api_type, MethodHandler* handler) {
    api_type_ = api_type;
    handler_.reset(handler);
  }

 private:
  ApiType api_type_ = ApiType::kSync;
  std::shared_ptr<MethodHandler> handler_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_RPC_SERVICE_METHOD_H_
