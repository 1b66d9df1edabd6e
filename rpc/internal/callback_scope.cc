#include "rpc/internal/callback_scope.h"

namespace rpc::internal {

constinit thread_local const CallbackScope* CallbackScope::innermost_ = nullptr;

}  // namespace rpc::internal
