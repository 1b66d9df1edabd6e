#include "rpc/client_interceptor.h"

#include <atomic>

#include "rpc/logging.h"

namespace rpc {
namespace {

constinit std::atomic<experimental::ClientInterceptorFactoryInterface*>
    global_factory{nullptr};

}  // namespace

namespace experimental {

void RegisterGlobalClientInterceptorFactory(
    ClientInterceptorFactoryInterface* factory) {
  if (global_factory.exchange(factory) != nullptr) {
    Log(LogLevel::kError,
        "a global factory of client interceptors is replaced by another; it is "
        "to be registered once");
  }
}

void TestOnlyResetGlobalClientInterceptorFactory() {
  global_factory.store(nullptr);
}

}  // namespace experimental

namespace internal {

experimental::ClientInterceptorFactoryInterface*
GlobalClientInterceptorFactory() {
  return global_factory.load(std::memory_order_acquire);
}

}  // namespace internal
}  // namespace rpc
