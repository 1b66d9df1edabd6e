// A stream on the server, as handlers of the synchronous API use it. Used by
// generated code through the classes of sync_stream.h.
//
// The handler runs on a thread of the server's executor for as long as the
// stream does (verbena.handler_threads).
//
// Thread rule: reading and writing may be done by different threads, each by
// one at a time, until the handler returns.
#ifndef VERBENA_RPC_INTERNAL_SYNC_SERVER_STREAM_H_
#define VERBENA_RPC_INTERNAL_SYNC_SERVER_STREAM_H_

#include <exception>

#include "rpc/buffer.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/server_stream.h"
#include "rpc/internal/thrown.h"
#include "rpc/server_context.h"
#include "rpc/status.h"
#include "rpc/write_options.h"

namespace rpc::internal {

class SyncServerStream : public ServerStream {
 public:
  // False where there is no message, or it does not parse.
  bool BlockingRead(MessageRef message, BufferChain* attachment);
  // Blocks until the next may be written. False: nobody will read it.
  bool BlockingWrite(ConstMessageRef message, WriteOptions options);
  // Does not wait.
  void SendInitialMetadata() { SendInitialMetadataAlone(); }

 protected:
  SyncServerStream() : ServerStream(&context_) {}

  // Runs the user's function and then RespondAndFinish, which waits for
  // interceptors only.
  virtual void RunHandler() = 0;
  void RespondAndFinish(Status status, ConstMessageRef response);
  // The same where the user's function threw `error`.
  void FinishAfterThrow(const std::exception_ptr& error) {
    RespondAndFinish(StatusOfThrown(error), ConstMessageRef());
  }

  ServerContext* context() { return &context_; }

 private:
  void Run() final { RunOnExecutor(); }
  void RunTask() final {
    if (IsStillWanted()) RunHandler();
  }
  // What comes is put into a queue, or wakes the handler.
  bool IsQuick() const final { return true; }

  ServerContext context_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SYNC_SERVER_STREAM_H_
