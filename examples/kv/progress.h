// Shows how far a long job is: on a terminal a bar that is redrawn in place,
// with rate and time left; elsewhere (a file, a pipe) one plain line every few
// seconds.
//
//   kv::Progress progress("loading", total_files, total_bytes,
//                         kv::Progress::OptionsFor(stderr));
//   ... progress.Add(1, file_bytes); ... progress.Draw(); ...
//   progress.Finish();
//
// Thread rule: Add from any thread; the rest from one thread at a time.
#ifndef VERBENA_EXAMPLES_KV_PROGRESS_H_
#define VERBENA_EXAMPLES_KV_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kv {

// What a progress display says; see RenderBar and RenderLine.
struct ProgressState {
  std::string_view verb;  // "loading"
  uint64_t files = 0;
  uint64_t total_files = 0;
  uint64_t bytes = 0;
  double fraction = 0;                             // of the work, 0 to 1
  double bytes_per_second = 0;                     // lately
  absl::Duration left = absl::InfiniteDuration();  // infinite: not known yet
};

// One line of at most `width` columns, without a line end; narrow terminals get
// less of it.
std::string RenderBar(const ProgressState& state, int width);
// One line for a log.
std::string RenderLine(const ProgressState& state);

class Progress {
 public:
  struct Options {
    FILE* out = stderr;
    // A terminal, of so many columns. 0: none, plain lines.
    int columns = 0;
    absl::Duration redraw_interval = absl::Milliseconds(100);
    absl::Duration line_interval = absl::Seconds(5);
    std::function<absl::Time()> clock = absl::Now;
  };
  // What suits `out`: a terminal's width, or plain lines.
  static Options OptionsFor(FILE* out);

  // The totals may turn out to be wrong (a file may grow): the display copes.
  Progress(std::string verb, uint64_t total_files, uint64_t total_bytes,
           Options options);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // So much was done since the last call. Two atomic additions.
  void Add(uint64_t files, uint64_t bytes);

  // Shows the state where it is time to. Cheap: call it often.
  void Draw();
  // Prints a line of the caller's (a warning) without tearing the bar.
  void Print(std::string_view line);
  // Removes the bar. What comes after is the caller's summary.
  void Finish();

  // When to call Draw next, at the latest.
  absl::Duration draw_interval() const;

 private:
  struct Sample {
    absl::Time time;
    double work;
    uint64_t bytes;
  };

  double WorkDone() const;
  ProgressState Snapshot(absl::Time now);
  void EraseBar();

  const std::string verb_;
  const uint64_t total_files_;
  const uint64_t total_bytes_;
  const Options options_;
  std::atomic<uint64_t> files_{0};
  std::atomic<uint64_t> bytes_{0};

  std::deque<Sample> samples_;  // the last few seconds, oldest first
  absl::Time next_draw_;
  bool bar_shown_ = false;
};

}  // namespace kv

#endif  // VERBENA_EXAMPLES_KV_PROGRESS_H_
