#include "rpc/internal/handler_task.h"

#include <utility>

#include "rpc/internal/thrown.h"

namespace rpc::internal {

Status HandlerTask::TakeStatus() {
  StatusTask task = std::move(task_);
  std::exception_ptr error = std::exchange(error_, nullptr);
  if (task) error = TaskAccess::Error(task);
  if (error != nullptr) return StatusOfThrown(error);
  if (!task) return Status(StatusCode::UNIMPLEMENTED, "");
  return TaskAccess::TakeResult(task);
}

}  // namespace rpc::internal
