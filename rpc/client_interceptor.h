// Interceptors of a channel's calls; see interceptor.h.
//
//   std::vector<std::unique_ptr<
//       rpc::experimental::ClientInterceptorFactoryInterface>> factories;
//   factories.push_back(std::make_unique<StampFactory>());
//   auto channel = rpc::experimental::CreateCustomChannelWithInterceptors(
//       address, rpc::InsecureChannelCredentials(), arguments,
//       std::move(factories));
//
// A call's interceptors live as long as its context.
//
// Thread rule: factories are asked by any number of threads at a time.
#ifndef VERBENA_RPC_CLIENT_INTERCEPTOR_H_
#define VERBENA_RPC_CLIENT_INTERCEPTOR_H_

#include <string>

#include "rpc/channel_interface.h"
#include "rpc/interceptor.h"
#include "rpc/internal/rpc_method.h"

namespace rpc {

class ClientContext;

namespace internal {
class ClientInterception;
}  // namespace internal

namespace experimental {

// What an interceptor may know of its call. Valid as long as the interceptor.
class ClientRpcInfo {
 public:
  // In the order of internal::RpcMethod::RpcType.
  enum class Type {
    UNARY,
    CLIENT_STREAMING,
    SERVER_STREAMING,
    BIDI_STREAMING,
    UNKNOWN  // never
  };

  ClientRpcInfo(const ClientRpcInfo&) = delete;
  ClientRpcInfo& operator=(const ClientRpcInfo&) = delete;

  // "/package.Service/Method".
  const char* method() const { return method_.c_str(); }
  // Of the stub's StubOptions; null where it has none.
  const char* suffix_for_stats() const { return suffix_for_stats_; }
  ChannelInterface* channel() { return channel_; }
  ClientContext* client_context() { return context_; }
  Type type() const { return type_; }

 private:
  friend class internal::ClientInterception;

  ClientRpcInfo(const internal::RpcMethod& method, ClientContext* context,
                ChannelInterface* channel)
      : method_(method.name()),
        suffix_for_stats_(method.suffix_for_stats()),
        type_(static_cast<Type>(method.method_type())),
        context_(context),
        channel_(channel) {}

  const std::string method_;  // a generic stub's goes with the call's start
  const char* const suffix_for_stats_;
  const Type type_;
  ClientContext* const context_;
  ChannelInterface* const channel_;
};

class ClientInterceptorFactoryInterface {
 public:
  virtual ~ClientInterceptorFactoryInterface() = default;
  // For one call; the call owns it. Null: none for this call.
  virtual Interceptor* CreateClientInterceptor(ClientRpcInfo* info) = 0;
};

// One more factory, after a channel's own, for all channels of the process that
// are made from now on. Once, before the first channel; it must outlive the
// last call. Rather give each channel its factories.
void RegisterGlobalClientInterceptorFactory(
    ClientInterceptorFactoryInterface* factory);
// For tests; while there are no calls.
void TestOnlyResetGlobalClientInterceptorFactory();

}  // namespace experimental

namespace internal {

// Null where there is none.
experimental::ClientInterceptorFactoryInterface*
GlobalClientInterceptorFactory();

}  // namespace internal
}  // namespace rpc

#endif  // VERBENA_RPC_CLIENT_INTERCEPTOR_H_
