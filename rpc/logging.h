// Log lines of the RPC layer and of transports.
//
// A program that does nothing gets warnings and errors on stderr. The
// environment variable VERBENA_LOG sets the level: debug, info, warning, error
// or none; SetLogLevel overrides it. SetLogSink sends lines elsewhere.
//
//   if (rpc::LogEnabled(rpc::LogLevel::kDebug)) {
//     rpc::Log(rpc::LogLevel::kDebug, absl::StrCat("QP ", number, " is up"));
//   }
//
// Thread rule: everything here may be called from any thread at any time. Not
// for hot paths: a line that is written takes a lock.
#ifndef VERBENA_RPC_LOGGING_H_
#define VERBENA_RPC_LOGGING_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/time/time.h"

namespace rpc {

enum class LogLevel : int {
  kDebug,
  kInfo,
  kWarning,
  kError,
  kNone,  // as a threshold: nothing is logged
};

// "debug", "info", "warning", "error", "none".
std::string_view LogLevelName(LogLevel level);

// Lines below `level` are dropped. Until the first call: VERBENA_LOG's level,
// or kWarning where that is unset or not a level's name.
void SetLogLevel(LogLevel level);
// Whether a line of this level would be written. Cheap: one relaxed load.
bool LogEnabled(LogLevel level);

// Writes one line; `text` needs no newline.
void Log(LogLevel level, std::string_view text);

// Receives every line that passes the threshold, one at a time. It must not log
// itself. An empty function restores the default, stderr. When this returns,
// the former sink is no longer in use.
using LogSink = std::function<void(LogLevel level, std::string_view text)>;
void SetLogSink(LogSink sink);

// Keeps a repeated line from flooding the log: at most one in `interval`.
//
//   static LogLimiter limiter(absl::Seconds(10));
//   uint64_t skipped;
//   if (limiter.Allow(&skipped)) rpc::Log(...);
class LogLimiter {
 public:
  explicit LogLimiter(absl::Duration interval)
      : interval_ns_(absl::ToInt64Nanoseconds(
            std::min(interval, absl::Hours(24 * 365)))) {}

  // True at most once in the interval, then with `*skipped` (may be null) set
  // to how often it was false since it was last true.
  bool Allow(uint64_t* skipped = nullptr);

 private:
  const int64_t interval_ns_;
  std::atomic<int64_t> next_ns_{0};
  std::atomic<uint64_t> skipped_{0};
};

}  // namespace rpc

#endif  // VERBENA_RPC_LOGGING_H_
