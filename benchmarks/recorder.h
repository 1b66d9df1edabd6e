// The clockwork of a measurement, and its results.
//
//   Recorder recorder({.warm_up = ..., .time = ...});
//   do {
//     const uint64_t start_ns = SteadyNowNs();
//     ... a call ...
//   } while (recorder.Note(start_ns, SteadyNowNs(), absl::OkStatus()));
//   Measurement result = recorder.Finish();
//
// It warms up, then counts the calls that end within the measured time; where
// calls are so long that hardly any does, it goes on for a few. Calls that fail
// are errors: they are counted apart and have no part in latencies and rates.
#ifndef VERBENA_BENCHMARKS_RECORDER_H_
#define VERBENA_BENCHMARKS_RECORDER_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "benchmarks/latency_histogram.h"

namespace benchmarks {

uint64_t SteadyNowNs();

// The time, for calls of which many are in flight: it is read afresh one time
// in an eighth of them, as reading it for every call would be a good part of
// what is measured. Latencies are right on average, and single ones off by what
// an eighth of the calls takes; where something stalls, those around it by as
// long as it does.
//
// Thread-safe.
class SharedClock {
 public:
  explicit SharedClock(int calls_in_flight)
      : uses_of_one_(static_cast<uint32_t>(calls_in_flight) / 8) {}

  uint64_t NowNs() {
    const uint32_t left = left_.load(std::memory_order_relaxed);
    if (left != 0) {
      left_.store(left - 1, std::memory_order_relaxed);
      return now_ns_.load(std::memory_order_relaxed);
    }
    const uint64_t now_ns = SteadyNowNs();
    now_ns_.store(now_ns, std::memory_order_relaxed);
    left_.store(uses_of_one_, std::memory_order_relaxed);
    return now_ns;
  }

 private:
  const uint32_t uses_of_one_;  // after the first
  std::atomic<uint32_t> left_{0};
  std::atomic<uint64_t> now_ns_{0};
};

struct Measurement {
  uint64_t errors = 0;
  std::string first_error;  // of one of them
  absl::Duration time;
  // Of calls that went well; so its count() is their number.
  std::unique_ptr<LatencyHistogram> latencies;
  // CPU time of the two processes for each call, spinning included; negative:
  // not known.
  double client_cpu_ns_per_call = -1;
  double server_cpu_ns_per_call = -1;

  double RatePerSecond() const;
};

// Thread-safe, but for Finish.
class Recorder {
 public:
  struct Options {
    absl::Duration warm_up = absl::Milliseconds(500);
    absl::Duration time = absl::Seconds(3);
    pid_t server = 0;  // 0: not a process of this host
  };
  explicit Recorder(const Options& options);

  // Notes a call that ran from `start_ns` to `end_ns`, both of them of one
  // clock or nearly so. False: the run is over, start no further call.
  bool Note(uint64_t start_ns, uint64_t end_ns, const absl::Status& status);

  // REQUIRES: no call runs any more.
  Measurement Finish();

 private:
  struct CpuTimes {
    int64_t client_ns = -1;
    int64_t server_ns = -1;
  };

  CpuTimes ReadCpuTimes() const;
  void NoteError(const absl::Status& status);
  void NoteBegin();
  bool NoteLateCall(uint64_t start_ns, uint64_t end_ns, bool ok);

  static constexpr uint64_t kLeastCalls = 8;

  const pid_t server_;
  const uint64_t begin_ns_;
  const uint64_t end_ns_;
  std::unique_ptr<LatencyHistogram> latencies_;
  std::atomic<bool> begun_{false};
  absl::Mutex mutex_;
  CpuTimes at_begin_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_late_end_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t errors_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string first_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RECORDER_H_
