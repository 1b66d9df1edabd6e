// A stream on the server whose handler is a coroutine. Used by generated code
// through server_coroutine.h.
//
// The handler begins on the polling thread, and takes no thread of its own.
//
// Thread rule: as ServerStream's; the handler goes on where an operation is
// completed.
#ifndef VERBENA_RPC_INTERNAL_COROUTINE_SERVER_STREAM_H_
#define VERBENA_RPC_INTERNAL_COROUTINE_SERVER_STREAM_H_

#include "rpc/internal/handler_task.h"
#include "rpc/internal/message_ref.h"
#include "rpc/internal/server_stream.h"
#include "rpc/internal/task_promise.h"
#include "rpc/server_context.h"
#include "rpc/status.h"

namespace rpc::internal {

class CoroutineServerStream : public ServerStream, private TaskWatcher {
 public:
  // For those who await them.
  using ServerStream::Decode;
  using ServerStream::Read;
  using ServerStream::SendInitialMetadata;
  using ServerStream::Write;

 protected:
  CoroutineServerStream() : ServerStream(&context_) {}

  // Calls the user's function; none where it is not implemented.
  virtual StatusTask CallHandler() = 0;
  // None: the server streams.
  virtual ConstMessageRef response() const { return ConstMessageRef(); }

  CallbackServerContext* context() { return &context_; }

 private:
  void Run() final;
  void OnTaskDone() final;
  void RunTask() final {}  // never posted

  CallbackServerContext context_;
  HandlerTask handler_;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_COROUTINE_SERVER_STREAM_H_
