#include "rpc/internal/callback_scope.h"

namespace rpc::internal {

constinit thread_local const void* CallbackScope::current_ = nullptr;

}  // namespace rpc::internal
