#include "benchmarks/rpc_bench_report.h"

#include "absl/strings/str_format.h"
#include "benchmarks/measurement_json.h"
#include "nlohmann/json.hpp"

namespace benchmarks {
namespace {

// Columns: mode, payload, concurrency, calls, errors, p50, p99, rate, GB/s.
constexpr char kLine[] = "%-10s %12s %6s %11s %7s %10s %10s %11s %8s  %s";

// "812 ns", "1.73 us", "12.4 ms": three digits.
std::string Duration(uint64_t ns) {
  if (ns < 1000) return absl::StrFormat("%d ns", ns);
  double value = static_cast<double>(ns);
  for (const char* unit : {"us", "ms"}) {
    value /= 1000;
    if (value < 1000) return absl::StrFormat("%.3g %s", value, unit);
  }
  return absl::StrFormat("%.3g s", value / 1000);
}

}  // namespace

std::string ModeName(Mode mode) {
  switch (mode) {
    case Mode::kLatency:
      return "latency";
    case Mode::kRate:
      return "rate";
    case Mode::kBandwidth:
      return "bandwidth";
    case Mode::kFetch:
      return "fetch";
  }
  return "";
}

std::string JsonLine(const Setup& setup, const WorkloadOptions& options,
                     const Measurement& measurement) {
  nlohmann::ordered_json line = {
      {"mode", ModeName(options.mode)},
      {"payload_bytes", options.payload_bytes},
      {"concurrency", options.concurrency},
      {"attachment", options.attachment},
      {"working_set_bytes", options.working_set_bytes},
      {"pause_us", absl::ToInt64Microseconds(options.pause)},
      {"timeout_ms", options.timeout.count()},
  };
  AddFigures(measurement, PayloadBytesPerCall(options), &line);
  line["device"] = setup.device;
  line["cpus"] = setup.cpus;
  return line.dump();
}

std::string TableHeader() {
  return absl::StrFormat(kLine, "mode", "payload B", "conc.", "calls", "errors",
                         "p50", "p99", "calls/s", "GB/s", "device");
}

std::string TableLine(const Setup& setup, const WorkloadOptions& options,
                      const Measurement& measurement) {
  const LatencyHistogram& latencies = *measurement.latencies;
  return absl::StrFormat(
      kLine, ModeName(options.mode),
      absl::StrFormat("%d", options.payload_bytes),
      absl::StrFormat("%d", options.concurrency),
      absl::StrFormat("%d", latencies.count()),
      absl::StrFormat("%d", measurement.errors),
      Duration(latencies.PercentileNs(0.5)),
      Duration(latencies.PercentileNs(0.99)),
      absl::StrFormat("%.0f", measurement.RatePerSecond()),
      absl::StrFormat("%.3f", GigabytesPerSecond(measurement, options)),
      setup.device);
}

void Reporter::Print(const Setup& setup, const WorkloadOptions& options,
                     const Measurement& measurement) {
  if (json_) {
    absl::FPrintF(out_, "%s\n", JsonLine(setup, options, measurement));
  } else {
    if (!has_header_) absl::FPrintF(out_, "%s\n", TableHeader());
    has_header_ = true;
    absl::FPrintF(out_, "%s\n", TableLine(setup, options, measurement));
  }
  std::fflush(out_);
}

}  // namespace benchmarks
