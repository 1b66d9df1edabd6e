// Base of generated services: the list of their methods.
//
// Thread rule: set up by one thread, then immutable. A service must outlive the
// servers it is registered with.
#ifndef VERBENA_RPC_SERVICE_H_
#define VERBENA_RPC_SERVICE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "rpc/internal/rpc_service_method.h"

namespace rpc {

class Service {
 public:
  Service() = default;
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

 protected:
  // For generated code. Takes over `method`; the n-th one has index n.
  void AddMethod(internal::RpcServiceMethod* method) {
    methods_.emplace_back(method);
  }
  // The method's calls go to `handler` from now on; taken over.
  void MarkMethodCallback(int index, internal::MethodHandler* handler) {
    methods_[static_cast<size_t>(index)]->SetHandler(handler);
  }
  internal::MethodHandler* GetHandler(int index) const {
    return methods_[static_cast<size_t>(index)]->handler();
  }

 private:
  friend class Server;

  std::vector<std::unique_ptr<internal::RpcServiceMethod>> methods_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVICE_H_
