// What rpc_bench measures: one workload at a time, against a server that runs.
//
//   WorkloadOptions options = {.mode = Mode::kLatency, .payload_bytes = 64};
//   absl::StatusOr<Measurement> result = RunWorkload(options, channel);
//
// A workload warms up, then counts the calls that end within the measured time;
// where calls are so long that hardly any does, it goes on for a few.
// Calls that fail, and calls whose answer is wrong, are errors: they are
// counted apart and have no part in latencies and rates.
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_WORKLOAD_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmarks/latency_histogram.h"
#include "rpc/rpc.h"

namespace benchmarks {

enum class Mode {
  // One thread, one blocking call after the other: Echo.
  kLatency,
  // `concurrency` calls in flight by the callback API, each of which starts the
  // next from its callback: Echo.
  kRate,
  // The same with Put: the payload goes one way.
  kBandwidth,
};

struct WorkloadOptions {
  Mode mode = Mode::kLatency;
  size_t payload_bytes = 64;
  int concurrency = 1;
  // The payload travels beside the message, not in it.
  bool attachment = false;
  // Payloads take turns out of so much memory, so that none is in a cache;
  // 0: one payload for all calls.
  uint64_t working_set_bytes = 0;
  absl::Duration warm_up = absl::Milliseconds(500);
  absl::Duration time = absl::Seconds(3);
};

struct Measurement {
  uint64_t errors = 0;
  std::string first_error;  // of one of them
  absl::Duration time;
  // Of calls that went well; so its count() is their number.
  std::unique_ptr<LatencyHistogram> latencies;

  double RatePerSecond() const;
  // Payload bytes that were moved, in units of 10^9: by Echo twice a call.
  double GigabytesPerSecond(const WorkloadOptions& options) const;
};

// Blocks until the workload is through. RESOURCE_EXHAUSTED: no memory for the
// payloads.
absl::StatusOr<Measurement> RunWorkload(
    const WorkloadOptions& options,
    const std::shared_ptr<rpc::Channel>& channel);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_WORKLOAD_H_
