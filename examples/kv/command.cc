#include "examples/kv/command.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/kv/format.h"

namespace kv {
namespace {

ExitCode ExitCodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kNotFound:
      return kExitNegative;
    case absl::StatusCode::kFailedPrecondition:
      return kExitUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return kExitUnreachable;
    default:
      return kExitRefused;
  }
}

// What the user can do about it, where the status does not say so itself.
std::string_view RemedyFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kDeadlineExceeded:
      return " (a larger --timeout_seconds gives it more time)";
    case absl::StatusCode::kUnimplemented:
      return " (is it a kv_server that listens there?)";
    default:
      return "";
  }
}

}  // namespace

void PrintError(std::string_view text) {
  absl::FPrintF(stderr, "kv: %s\n", std::string(text));
}

ExitCode CallFailed(const absl::Status& status) {
  PrintError(absl::StrCat(absl::StatusCodeToString(status.code()), ": ",
                          status.message(),
                          std::string(RemedyFor(status.code()))));
  return ExitCodeOf(status.code());
}

ExitCode FileFailed(const absl::Status& status) {
  PrintError(Printable(std::string(status.message())));
  return kExitLocal;
}

}  // namespace kv
