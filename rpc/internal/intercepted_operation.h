// An operation of a call with interceptors, from the application's wish to the
// application's hearing of it:
//
//   Begin: ShowBefore, interceptors first to last, Await
//   Go:    Perform (or the hijacking interceptor)
//   Complete: ShowAfter, interceptors last to first, End
//
// The base of what client_interception.cc and server_interception.cc do.
//
// Thread rule: one thread at a time, which may change from step to step.
#ifndef VERBENA_RPC_INTERNAL_INTERCEPTED_OPERATION_H_
#define VERBENA_RPC_INTERNAL_INTERCEPTED_OPERATION_H_

#include "rpc/internal/interception_batch.h"
#include "rpc/internal/interceptors.h"
#include "rpc/internal/stream_operation.h"

namespace rpc::internal {

class InterceptedOperation : public InterceptionBatch,
                             protected StreamOperation {
 public:
  ~InterceptedOperation() override = default;

  void Begin();
  // Its turn has come.
  void Go();

 protected:
  using InterceptionBatch::InterceptionBatch;

  void Complete(bool ok) final;

 private:
  // What interceptors are shown, first to last.
  virtual void ShowBefore() {}
  // They are through: ends in Go, when it is the operation's turn.
  virtual void Await() { Go(); }
  // Ends in Complete.
  virtual void Perform() = 0;
  // The same of a hijacked call: what its interceptor is shown, and whether the
  // operation went well by it.
  virtual void ShowHijacker() {}
  virtual bool HijackerDone() { return true; }
  // What interceptors are shown, last to first. May change what the application
  // hears.
  virtual void ShowAfter(bool* /*ok*/) {}
  // Tells the application. The last thing; destroys the operation.
  virtual void End(bool ok) = 0;

  void OnStageDone(Stage stage) final;

  bool ok_ = false;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_INTERCEPTED_OPERATION_H_
