#include "rdma_transport/verbs/verbs_error.h"

#include <sys/resource.h>

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

// As ulimit -l has it, which counts in KiB; empty where there is no limit.
std::string MemlockLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "";
  return absl::StrCat(limit.rlim_cur / 1024, " KiB");
}

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

absl::Status RegistrationError(int error, uint64_t bytes) {
  const std::string what = absl::StrCat(bytes, " bytes");
  if (error != ENOMEM && error != EAGAIN && error != EPERM) {
    return VerbsError("ibv_reg_mr", error, what);
  }
  const std::string limit = MemlockLimit();
  if (limit.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "ibv_reg_mr: ", strerror(error), ", ", what,
        ": the system or the device has no room for it, and RLIMIT_MEMLOCK is "
        "unlimited: lower the memory budget"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "ibv_reg_mr: ", strerror(error), ", ", what,
      ": registered memory is pinned, and this process may pin ", limit,
      " in all: raise it with `ulimit -l unlimited` (LimitMEMLOCK=infinity in "
      "systemd, memlock in /etc/security/limits.conf), or lower the memory "
      "budget"));
}

void LogIfFailed(std::string_view call, int error) {
  if (error == 0) return;
  rpc::Log(rpc::LogLevel::kError, VerbsError(call, error).ToString());
}

}  // namespace rdma
