#include "rdma_transport/software/log.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rdma::soft {
namespace {

constexpr int64_t kWindowNs = 1'000'000'000;

}  // namespace

void Log(std::string_view source, std::string_view text) {
  // One call, so that lines of several threads do not mix.
  std::fprintf(stderr, "verbena %.*s: %.*s\n", static_cast<int>(source.size()),
               source.data(), static_cast<int>(text.size()), text.data());
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
    Log(source_, text);
  } else {
    Log(source_, absl::StrCat(std::string(text), " (and ", suppressed,
                              " lines like it were left out)"));
  }
}

}  // namespace rdma::soft
