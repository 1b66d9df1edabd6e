#include "rpc/client_coroutine.h"

#include "rpc/logging.h"

namespace rpc::internal {

CoroClientStream::~CoroClientStream() {
  if (stream_->IsAwaited()) {
    Log(LogLevel::kError,
        "a stream was destroyed while a coroutine awaited it");
  }
  stream_->Abandon();
}

}  // namespace rpc::internal
