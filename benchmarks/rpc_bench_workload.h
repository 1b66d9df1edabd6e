// What rpc_bench measures: one workload at a time, against a server that runs.
//
//   WorkloadOptions options = {.mode = Mode::kLatency, .payload_bytes = 64};
//   absl::StatusOr<Measurement> result = RunWorkload(options, channel);
//
// What counts, and when: recorder.h. Calls whose answer is wrong are errors.
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_WORKLOAD_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_WORKLOAD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmarks/recorder.h"
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
  // One thread, one blocking call after the other: Get, the payload comes.
  kFetch,
};

struct WorkloadOptions {
  Mode mode = Mode::kLatency;
  size_t payload_bytes = 64;
  int concurrency = 1;
  // The payload travels beside the message, not in it. Not with kFetch.
  bool attachment = false;
  // Payloads take turns out of so much memory, so that none is in a cache;
  // 0: one payload for all calls.
  uint64_t working_set_bytes = 0;
  // kLatency, kFetch: the thread sleeps for so long after each call.
  absl::Duration pause;
  // Each call has a deadline so long after its start; 0: none.
  std::chrono::milliseconds timeout{0};
  absl::Duration warm_up = absl::Milliseconds(500);
  absl::Duration time = absl::Seconds(3);
  pid_t server = 0;  // 0: not a process of this host
};

// By Echo it is moved twice.
double PayloadBytesPerCall(const WorkloadOptions& options);
// Payload bytes that were moved, in units of 10^9.
double GigabytesPerSecond(const Measurement& measurement,
                          const WorkloadOptions& options);

// Blocks until the workload is through. RESOURCE_EXHAUSTED: no memory for the
// payloads.
absl::StatusOr<Measurement> RunWorkload(
    const WorkloadOptions& options,
    const std::shared_ptr<rpc::Channel>& channel);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_WORKLOAD_H_
