#include "rpc/internal/handler_task.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rpc::internal {
namespace {

// What was thrown is for the server's log; it may be nothing for clients.
Status StatusOfThrown(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    Log(LogLevel::kError, absl::StrCat("a handler threw: ", thrown.what()));
  } catch (...) {
    Log(LogLevel::kError, "a handler threw what is no std::exception");
  }
  return Status(StatusCode::UNKNOWN, "the method's handler threw an exception");
}

}  // namespace

Status HandlerTask::TakeStatus() {
  StatusTask task = std::move(task_);
  std::exception_ptr error = std::exchange(error_, nullptr);
  if (task) error = TaskAccess::Error(task);
  if (error != nullptr) return StatusOfThrown(error);
  if (!task) return Status(StatusCode::UNIMPLEMENTED, "");
  return TaskAccess::TakeResult(task);
}

}  // namespace rpc::internal
