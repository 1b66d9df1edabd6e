#include "rpc/internal/coroutine_handlers.h"

namespace rpc::internal {

void CoroutineServerCall::Run() {
  KeepPeer();
  handler_.Begin([this] { return CallHandler(); }, this);
}

void CoroutineServerCall::OnTaskDone() {
  const Status status = handler_.TakeStatus();
  DropReceivedAttachment();
  Respond(status, response(), /*last_act=*/true);
  Finished();
}

}  // namespace rpc::internal
