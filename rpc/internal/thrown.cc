#include "rpc/internal/thrown.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rpc::internal {

void LogThrown(std::string_view who, const std::exception_ptr& error) {
  const std::string name(who);
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    Log(LogLevel::kError, absl::StrCat(name, " threw: ", thrown.what()));
  } catch (...) {
    Log(LogLevel::kError, absl::StrCat(name, " threw no std::exception"));
  }
}

Status StatusOfThrown(const std::exception_ptr& error) {
  LogThrown("a handler", error);
  return Status(StatusCode::UNKNOWN, "the method's handler threw an exception");
}

}  // namespace rpc::internal
