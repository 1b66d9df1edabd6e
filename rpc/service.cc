#include "rpc/service.h"

#include <algorithm>

namespace rpc {

void Service::MarkMethodAsync(int index) {
  internal::RpcServiceMethod& method = Method(index);
  const auto type = method.method_type();
  const bool one_message = type == internal::RpcMethod::NORMAL_RPC ||
                           type == internal::RpcMethod::SERVER_STREAMING;
  method.SetHandler(ApiType::kAsync,
                    new internal::AsyncMethodHandler(one_message));
}

bool Service::HasMethods(ApiType api_type) const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [api_type](const auto& method) {
                       return method->api_type() == api_type;
                     });
}

void Service::RequestAsync(int index,
                           const internal::AsyncRequest::Target& target) {
  static_cast<internal::AsyncMethodHandler*>(GetHandler(index))
      ->Request(target);
}

}  // namespace rpc
