#include "rdma_transport/verbs/verbs_error.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rdma {
namespace {

struct ErrnoRow {
  int error;
  absl::StatusCode code;
  const char* remedy;  // "" where errno says it all
};

constexpr ErrnoRow kErrnoTable[] = {
    {ENOMEM, absl::StatusCode::kResourceExhausted,
     "raise RLIMIT_MEMLOCK (ulimit -l) or lower the memory budget"},
    {ENOSPC, absl::StatusCode::kResourceExhausted,
     "the device or shared memory is full"},
    {EMFILE, absl::StatusCode::kResourceExhausted,
     "raise RLIMIT_NOFILE (ulimit -n)"},
    {ENFILE, absl::StatusCode::kResourceExhausted,
     "the system has no descriptors left"},
    {EAGAIN, absl::StatusCode::kResourceExhausted, "try again later"},
    {EINVAL, absl::StatusCode::kInvalidArgument, ""},
    {EBUSY, absl::StatusCode::kFailedPrecondition,
     "something made of it still exists"},
    {EPERM, absl::StatusCode::kPermissionDenied, ""},
    {EACCES, absl::StatusCode::kPermissionDenied, ""},
    {EOPNOTSUPP, absl::StatusCode::kUnimplemented,
     "the device does not support it"},
    {ENOSYS, absl::StatusCode::kUnimplemented,
     "the device does not support it"},
    {ENODEV, absl::StatusCode::kUnavailable, "the device is gone"},
    {EIO, absl::StatusCode::kUnavailable, "the device is gone"},
};

}  // namespace

absl::Status VerbsError(std::string_view call, int error,
                        std::string_view what) {
  absl::StatusCode code = absl::StatusCode::kInternal;
  const char* remedy = "";
  for (const ErrnoRow& row : kErrnoTable) {
    if (row.error == error) {
      code = row.code;
      remedy = row.remedy;
      break;
    }
  }
  std::string text = absl::StrCat(std::string(call), ": ", strerror(error));
  if (!what.empty()) absl::StrAppend(&text, ", ", std::string(what));
  if (*remedy != '\0') absl::StrAppend(&text, ": ", remedy);
  return absl::Status(code, text);
}

void LogIfFailed(std::string_view call, int error) {
  if (error == 0) return;
  rpc::Log(rpc::LogLevel::kError, VerbsError(call, error).ToString());
}

}  // namespace rdma
