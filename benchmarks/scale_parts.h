// The parts of scale_bench. Each starts the processes that it needs, measures
// from this one, prints its lines, and ends them.
//
// Thread rule: the main thread.
#ifndef VERBENA_BENCHMARKS_SCALE_PARTS_H_
#define VERBENA_BENCHMARKS_SCALE_PARTS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmarks/recorder.h"
#include "benchmarks/rpc_bench_server.h"
#include "benchmarks/rpc_bench_workload.h"
#include "benchmarks/scale_client.h"
#include "benchmarks/scale_report.h"

namespace benchmarks {

struct ScaleSettings {
  EndpointSettings endpoint;
  std::string host = "127.0.0.1";
  std::vector<int> cpus;  // the clients', the server's; empty: not bound
  // For child processes: what makes them set up their endpoint alike.
  std::vector<std::string> flags;
  int connections = 1000;  // idle ones
  int rounds = 9;
  SleepingCalls sleeping;
  absl::Duration warm_up;    // of each measurement
  absl::Duration time;       // of each measurement
  absl::Duration idle_time;  // for the CPU time of idle processes
};

// (a) What an idle server with many connections costs, and (b) what these cost
// the calls of another connection. Sets idle_cpu_percent (of one CPU, the
// server's process) and idle_connections_slow_down (0.05: round trips take 5%
// longer).
absl::Status MeasureIdleConnections(const ScaleSettings& settings,
                                    ScaleReport& report);

// (c) What handlers that sleep, called on one connection, cost quick calls on
// another. Sets blocked_p99_ratio.
absl::Status MeasureSleepingHandlers(const ScaleSettings& settings,
                                     ScaleReport& report);

// (d) Rates with several threads, channels, connections and pollers.
absl::Status MeasureRates(const ScaleSettings& settings, ScaleReport& report);

// ---- For the parts.

absl::StatusOr<ServerProcess> StartScaleServer(const ScaleSettings& settings,
                                               int pollers = 1);
absl::StatusOr<OtherClient> StartOtherClient(const ScaleSettings& settings,
                                             const std::string& address);
// Blocking round trips of 64 B; an error where a call fails.
absl::StatusOr<Measurement> MeasureRoundTrips(
    const ScaleSettings& settings,
    const std::shared_ptr<rpc::Channel>& channel);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_SCALE_PARTS_H_
