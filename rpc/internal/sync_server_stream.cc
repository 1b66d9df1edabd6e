#include "rpc/internal/sync_server_stream.h"

#include <utility>

#include "absl/time/time.h"

namespace rpc::internal {
namespace {

bool Wait(BlockingOperation& operation) {
  operation.done().WaitUntil(absl::InfiniteFuture());
  return operation.ok();
}

}  // namespace

bool SyncServerStream::BlockingRead(MessageRef message,
                                    BufferChain* attachment) {
  StreamMessage received;
  BlockingOperation operation;
  Read(&received, message, attachment, &operation);
  return Wait(operation) && Decode(received, message, attachment);
}

bool SyncServerStream::BlockingWrite(ConstMessageRef message,
                                     WriteOptions options) {
  BlockingOperation operation;
  Write(message, std::move(options), &operation);
  return Wait(operation);
}

void SyncServerStream::RespondAndFinish(Status status,
                                        ConstMessageRef response) {
  DropReceivedAttachment();
  BlockingOperation responded;
  RespondAtEnd(std::move(status), response, &responded);
  Wait(responded);
  Finished();
}

}  // namespace rpc::internal
