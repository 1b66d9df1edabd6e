#include "rpc/service.h"

namespace rpc {

void Service::MarkMethodAsync(int index) {
  internal::RpcServiceMethod& method = Method(index);
  const auto type = method.method_type();
  const bool one_message = type == internal::RpcMethod::NORMAL_RPC ||
                           type == internal::RpcMethod::SERVER_STREAMING;
  method.SetHandler(new internal::AsyncMethodHandler(one_message));
  has_async_methods_ = true;
}

void Service::RequestAsync(int index,
                           const internal::AsyncRequest::Target& target) {
  static_cast<internal::AsyncMethodHandler*>(GetHandler(index))
      ->Request(target);
}

}  // namespace rpc
