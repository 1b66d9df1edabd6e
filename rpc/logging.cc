#include "rpc/logging.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace rpc {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warning",
                                                    "error", "none"};

LogLevel LevelFromEnvironment() {
  const char* value = std::getenv("VERBENA_LOG");
  if (value == nullptr) return LogLevel::kWarning;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (value == kNames[i]) return static_cast<LogLevel>(i);
  }
  return LogLevel::kWarning;
}

std::atomic<LogLevel>& Threshold() {
  static std::atomic<LogLevel> threshold{LevelFromEnvironment()};
  return threshold;
}

// Never destroyed: threads may log while the process exits.
struct Output {
  absl::Mutex mutex;
  LogSink sink ABSL_GUARDED_BY(mutex);
};
Output& GetOutput() {
  static auto* const output = new Output;
  return *output;
}

void WriteToStderr(LogLevel level, std::string_view text) {
  const std::string_view name = LogLevelName(level);
  const std::string line = absl::StrCat(
      absl::FormatTime("%H:%M:%E6S", absl::Now(), absl::LocalTimeZone()),
      " verbena ", absl::string_view(name.data(), name.size()), ": ",
      absl::string_view(text.data(), text.size()), "\n");
  // One write, so that lines of several processes do not mix. There is nobody
  // to tell when it fails.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  return kNames[static_cast<size_t>(level)];
}

void SetLogLevel(LogLevel level) {
  Threshold().store(level, std::memory_order_relaxed);
}

bool LogEnabled(LogLevel level) {
  return level >= Threshold().load(std::memory_order_relaxed) &&
         level != LogLevel::kNone;
}

void Log(LogLevel level, std::string_view text) {
  if (!LogEnabled(level)) return;
  Output& output = GetOutput();
  absl::MutexLock lock(&output.mutex);
  if (output.sink) {
    output.sink(level, text);
  } else {
    WriteToStderr(level, text);
  }
}

void SetLogSink(LogSink sink) {
  Output& output = GetOutput();
  absl::MutexLock lock(&output.mutex);
  output.sink.swap(sink);
}

bool LogLimiter::Allow(uint64_t* skipped) {
  const int64_t now = std::chrono::steady_clock::now().time_since_epoch() /
                      std::chrono::nanoseconds(1);
  int64_t next = next_ns_.load(std::memory_order_relaxed);
  // Losing the exchange means that another thread logs this line now.
  if (now < next || !next_ns_.compare_exchange_strong(
                        next, now + interval_ns_, std::memory_order_relaxed)) {
    skipped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const uint64_t count = skipped_.exchange(0, std::memory_order_relaxed);
  if (skipped != nullptr) *skipped = count;
  return true;
}

}  // namespace rpc
