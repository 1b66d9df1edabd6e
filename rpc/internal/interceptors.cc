#include "rpc/internal/interceptors.h"

namespace rpc::internal {

void Interceptors::Add(experimental::Interceptor* interceptor, size_t place) {
  if (interceptor == nullptr) return;
  entries_.push_back(
      {std::unique_ptr<experimental::Interceptor>(interceptor), place});
}

void Interceptors::SetHijacker(size_t index) {
  reach_.store(index + 1, std::memory_order_release);
  is_hijacked_.store(true, std::memory_order_release);
}

}  // namespace rpc::internal
