#include "rdma_transport/software/log.h"

#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rdma::soft {
namespace {

constexpr int64_t kWindowNs = 1'000'000'000;

}  // namespace

void Log(std::string_view text) {
  // One call, so that lines of several threads do not mix.
  std::fprintf(stderr, "verbena soft device: %.*s\n",
               static_cast<int>(text.size()), text.data());
}

void RateLimitedLog::Write(std::string_view text) {
  std::lock_guard lock(mutex_);
  const int64_t now_ns = clock_->NowNanoseconds();
  if (now_ns - window_start_ns_ >= kWindowNs) {
    window_start_ns_ = now_ns;
    lines_in_window_ = 0;
  }
  if (lines_in_window_ == kLinesPerSecond) {
    ++suppressed_;
    return;
  }
  ++lines_in_window_;
  const int64_t suppressed = std::exchange(suppressed_, 0);
  if (suppressed == 0) {
    Log(text);
  } else {
    Log(absl::StrCat(std::string(text), " (and ", suppressed,
                     " lines like it were left out)"));
  }
}

}  // namespace rdma::soft
