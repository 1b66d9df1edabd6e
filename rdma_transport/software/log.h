// Lines that the software device says to its operator, on stderr: what a peer
// or the machine did wrong, and what to do about it. Never on the hot path.
//
//   Log(absl::StrCat("ibv_reg_mr: ", bytes, " bytes are too many"));
//
//   RateLimitedLog log(clock);   // for what a peer can provoke again and again
//   log.Write("a handshake was no handshake");
//
// Thread rule: Log and RateLimitedLog may be used from any thread.
#ifndef VERBENA_RDMA_TRANSPORT_SOFTWARE_LOG_H_
#define VERBENA_RDMA_TRANSPORT_SOFTWARE_LOG_H_

#include <cstdint>
#include <mutex>
#include <string_view>

#include "rdma_transport/software/clock.h"

namespace rdma::soft {

// Writes "verbena soft device: TEXT" as one line.
void Log(std::string_view text);

// At most kLinesPerSecond lines a second; the next line that passes says how
// many did not.
class RateLimitedLog {
 public:
  static constexpr int kLinesPerSecond = 5;

  // REQUIRES: `clock` outlives this.
  explicit RateLimitedLog(Clock* clock) : clock_(clock) {}

  void Write(std::string_view text);

 private:
  Clock* const clock_;
  std::mutex mutex_;
  int64_t window_start_ns_ = 0;
  int lines_in_window_ = 0;
  int64_t suppressed_ = 0;
};

}  // namespace rdma::soft

#endif  // VERBENA_RDMA_TRANSPORT_SOFTWARE_LOG_H_
