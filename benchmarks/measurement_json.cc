#include "benchmarks/measurement_json.h"

#include <cmath>

#include "absl/time/time.h"

namespace benchmarks {

void AddFigures(const Measurement& measurement, double payload_bytes_per_call,
                nlohmann::ordered_json* line) {
  const LatencyHistogram& latencies = *measurement.latencies;
  const double rate = measurement.RatePerSecond();
  line->update({
      {"seconds", absl::ToDoubleSeconds(measurement.time)},
      {"calls", latencies.count()},
      {"errors", measurement.errors},
      {"p50_ns", latencies.PercentileNs(0.5)},
      {"p90_ns", latencies.PercentileNs(0.9)},
      {"p99_ns", latencies.PercentileNs(0.99)},
      {"p999_ns", latencies.PercentileNs(0.999)},
      {"max_ns", latencies.PercentileNs(1)},
      {"rate_per_s", std::round(rate)},
      {"gigabytes_per_s",
       std::round(rate * payload_bytes_per_call / 1e5) * 1e-4},
      {"client_cpu_ns_per_call",
       std::round(measurement.client_cpu_ns_per_call)},
      {"server_cpu_ns_per_call",
       std::round(measurement.server_cpu_ns_per_call)},
  });
  if (measurement.errors > 0) (*line)["first_error"] = measurement.first_error;
}

}  // namespace benchmarks
