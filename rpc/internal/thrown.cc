#include "rpc/internal/thrown.h"

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rpc::internal {

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

}  // namespace rpc::internal
