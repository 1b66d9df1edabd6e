#include "rpc/internal/coroutine_server_stream.h"

#include <utility>

namespace rpc::internal {

void CoroutineServerStream::Run() {
  KeepPeer();
  handler_.Begin([this] { return CallHandler(); }, this);
}

void CoroutineServerStream::OnTaskDone() {
  Status status = handler_.TakeStatus();
  DropReceivedAttachment();
  RespondAtEnd(std::move(status), response());
  Finished();
}

}  // namespace rpc::internal
