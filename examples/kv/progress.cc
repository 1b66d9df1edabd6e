#include "examples/kv/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "examples/kv/format.h"

namespace kv {
namespace {

// Small files cost calls, large ones bytes: a file counts as so many bytes of
// work, so that the time left is right for both kinds.
constexpr double kFileWorkBytes = 64 * 1024;

// Rates are of this last stretch of time.
constexpr absl::Duration kRateWindow = absl::Seconds(5);

constexpr int kMinBarColumns = 10;
constexpr int kMaxBarColumns = 40;

std::string Numbers(const ProgressState& state) {
  return absl::StrFormat("%d/%d files  %s  %s", state.files, state.total_files,
                         FormatBytes(state.bytes),
                         FormatRate(state.bytes_per_second));
}

std::string TimeLeft(const ProgressState& state) {
  return state.left == absl::InfiniteDuration()
             ? "-:-- left"
             : FormatTimeLeft(state.left) + " left";
}

int Percent(const ProgressState& state) {
  // Rounded down: 100% means done.
  return static_cast<int>(state.fraction * 100);
}

}  // namespace

std::string RenderBar(const ProgressState& state, int width) {
  const std::string numbers = absl::StrFormat(" %3d%%  %s  %s", Percent(state),
                                              Numbers(state), TimeLeft(state));
  const int room = width - static_cast<int>(numbers.size()) - 2;
  if (room < kMinBarColumns) {
    const std::string line =
        absl::StrFormat("%3d%%  %s  %s", Percent(state),
                        FormatRate(state.bytes_per_second), TimeLeft(state));
    return line.substr(0, static_cast<size_t>(std::max(width, 0)));
  }
  const int columns = std::min(room, kMaxBarColumns);
  const int full = static_cast<int>(state.fraction * columns);
  return absl::StrCat("[", std::string(static_cast<size_t>(full), '#'),
                      std::string(static_cast<size_t>(columns - full), '-'),
                      "]", numbers);
}

std::string RenderLine(const ProgressState& state) {
  return absl::StrFormat("%s: %d%%  %s  %s", std::string(state.verb),
                         Percent(state), Numbers(state), TimeLeft(state));
}

Progress::Options Progress::OptionsFor(FILE* out) {
  Options options{.out = out};
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  winsize size = {};
  if (!dumb && ::isatty(::fileno(out)) == 1) {
    const bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0;
    options.columns = known && size.ws_col > 0 ? size.ws_col : 80;
  }
  return options;
}

Progress::Progress(std::string verb, uint64_t total_files, uint64_t total_bytes,
                   Options options)
    : verb_(std::move(verb)),
      total_files_(total_files),
      total_bytes_(total_bytes),
      options_(std::move(options)) {
  const absl::Time now = options_.clock();
  samples_.push_back({.time = now, .work = 0, .bytes = 0});
  next_draw_ = now + draw_interval();
}

absl::Duration Progress::draw_interval() const {
  return options_.columns > 0 ? options_.redraw_interval
                              : options_.line_interval;
}

void Progress::Add(uint64_t files, uint64_t bytes) {
  files_.fetch_add(files, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

double Progress::WorkDone() const {
  return static_cast<double>(bytes_.load(std::memory_order_relaxed)) +
         kFileWorkBytes *
             static_cast<double>(files_.load(std::memory_order_relaxed));
}

ProgressState Progress::Snapshot(absl::Time now) {
  const double work = WorkDone();
  const double total = static_cast<double>(total_bytes_) +
                       kFileWorkBytes * static_cast<double>(total_files_);
  ProgressState state{.verb = verb_,
                      .files = files_.load(std::memory_order_relaxed),
                      .total_files = total_files_,
                      .bytes = bytes_.load(std::memory_order_relaxed)};
  state.fraction = total > 0 ? std::min(work / total, 1.0) : 1.0;

  // Keep one sample from before the window: the rate is since then.
  while (samples_.size() > 1 && samples_[1].time <= now - kRateWindow) {
    samples_.pop_front();
  }
  const Sample& since = samples_.front();
  const double seconds = absl::ToDoubleSeconds(now - since.time);
  if (seconds > 0) {
    state.bytes_per_second =
        static_cast<double>(state.bytes - since.bytes) / seconds;
    const double work_per_second = (work - since.work) / seconds;
    if (work_per_second > 0) {
      state.left = absl::Seconds(std::max(total - work, 0.0) / work_per_second);
    }
  }
  samples_.push_back({.time = now, .work = work, .bytes = state.bytes});
  return state;
}

void Progress::Draw() {
  const absl::Time now = options_.clock();
  if (now < next_draw_) return;
  next_draw_ = now + draw_interval();
  const ProgressState state = Snapshot(now);
  if (options_.columns > 0) {
    // One column less: some terminals wrap at the last one.
    absl::FPrintF(options_.out, "\r%s\033[K",
                  RenderBar(state, options_.columns - 1));
    bar_shown_ = true;
  } else {
    absl::FPrintF(options_.out, "%s\n", RenderLine(state));
  }
  std::fflush(options_.out);
}

void Progress::Print(std::string_view line) {
  EraseBar();
  absl::FPrintF(options_.out, "%s\n", std::string(line));
  std::fflush(options_.out);
}

void Progress::Finish() { EraseBar(); }

void Progress::EraseBar() {
  if (!std::exchange(bar_shown_, false)) return;
  absl::FPrintF(options_.out, "\r\033[K");
  std::fflush(options_.out);
}

}  // namespace kv
