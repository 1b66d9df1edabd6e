// The coroutine of a handler, from its call to its status.
//
// Thread rule: Begin by one thread, TakeStatus by the one that OnTaskDone came
// to.
#ifndef VERBENA_RPC_INTERNAL_HANDLER_TASK_H_
#define VERBENA_RPC_INTERNAL_HANDLER_TASK_H_

#include <exception>

#include "rpc/coroutine.h"
#include "rpc/internal/task_promise.h"
#include "rpc/status.h"

namespace rpc::internal {

// What a handler returns; in the classes of calls Task is the executor's.
using StatusTask = Task<Status>;

class HandlerTask {
 public:
  // Begins what `call_handler()` returns. `watcher` hears once of its end,
  // which may be before this returns; this may be gone by then.
  template <class CallHandler>
  void Begin(CallHandler call_handler, TaskWatcher* watcher) {
    try {
      task_ = call_handler();
    } catch (...) {
      error_ = std::current_exception();
    }
    if (task_) {
      TaskAccess::Start(task_, watcher);
    } else {
      watcher->OnTaskDone();
    }
  }

  // Once it has ended; destroys the coroutine. UNKNOWN where it threw,
  // UNIMPLEMENTED where there was none.
  Status TakeStatus();

 private:
  StatusTask task_;
  std::exception_ptr error_;  // of a handler that made no coroutine
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_HANDLER_TASK_H_
