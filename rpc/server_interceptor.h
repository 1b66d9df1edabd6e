// Interceptors of a server's calls; see interceptor.h.
//
//   std::vector<std::unique_ptr<
//       rpc::experimental::ServerInterceptorFactoryInterface>> factories;
//   factories.push_back(std::make_unique<StampFactory>());
//   builder.experimental().SetInterceptorCreators(std::move(factories));
//
// A call's interceptors are made before its handler begins (for services with
// completion queues: when the request for a call is answered), and live until
// the call is over and its handler is through.
//
// Thread rule: factories are asked by any number of threads at a time.
#ifndef VERBENA_RPC_SERVER_INTERCEPTOR_H_
#define VERBENA_RPC_SERVER_INTERCEPTOR_H_

#include <string>
#include <string_view>

#include "rpc/interceptor.h"
#include "rpc/internal/rpc_method.h"

namespace rpc {

class ServerContextBase;

namespace internal {
class ServerInterception;
}  // namespace internal

namespace experimental {

// What an interceptor may know of its call. Valid as long as the interceptor.
class ServerRpcInfo {
 public:
  // In the order of internal::RpcMethod::RpcType.
  enum class Type { UNARY, CLIENT_STREAMING, SERVER_STREAMING, BIDI_STREAMING };

  ServerRpcInfo(const ServerRpcInfo&) = delete;
  ServerRpcInfo& operator=(const ServerRpcInfo&) = delete;

  // "/package.Service/Method", as the client named it.
  const char* method() const { return method_.c_str(); }
  // Of a method that no service has: BIDI_STREAMING.
  Type type() const { return type_; }
  // Valid until the handler is through with it.
  ServerContextBase* server_context() { return context_; }

 private:
  friend class internal::ServerInterception;

  ServerRpcInfo(std::string_view method, internal::RpcMethod::RpcType type)
      : method_(method), type_(static_cast<Type>(type)) {}

  const std::string method_;
  const Type type_;
  ServerContextBase* context_ = nullptr;
};

class ServerInterceptorFactoryInterface {
 public:
  virtual ~ServerInterceptorFactoryInterface() = default;
  // For one call; the call owns it. Null: none for this call.
  virtual Interceptor* CreateServerInterceptor(ServerRpcInfo* info) = 0;
};

}  // namespace experimental
}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_INTERCEPTOR_H_
