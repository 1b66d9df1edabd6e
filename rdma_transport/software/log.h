// Lines that the software device says to its operator, on stderr: what a peer
// or the machine did wrong, and what to do about it. Never on the hot path.
//
//   Log("soft0", absl::StrCat("refused a peer of user ", uid));
//
//   RateLimitedLog log(clock, "soft0");   // for what a peer can provoke
//   log.Write("a handshake was no handshake");
//
// Thread rule: Log and RateLimitedLog may be used from any thread.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_LOG_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_LOG_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "rdma_transport/software/clock.h"

namespace rdma::soft {

// Writes "verbena SOURCE: TEXT" as one line.
void Log(std::string_view source, std::string_view text);

// At most kLinesPerSecond lines a second; the next line that passes says how
// many did not.
class RateLimitedLog {
 public:
  static constexpr int kLinesPerSecond = 5;

  // REQUIRES: `clock` outlives this.
  RateLimitedLog(Clock* clock, std::string_view source)
      : clock_(clock), source_(source) {}

  void Write(std::string_view text);

 private:
  Clock* const clock_;
  const std::string source_;
  std::mutex mutex_;
  int64_t window_start_ns_ = 0;
  int lines_in_window_ = 0;
  int64_t suppressed_ = 0;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_LOG_H_
