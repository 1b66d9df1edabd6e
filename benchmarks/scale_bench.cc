// `scale_bench` measures what many connections, threads and blocking handlers
// cost; see `scale_bench --help`.
//
// Client, servers and further clients are processes of their own. Results go to
// stdout, everything else to stderr. Exit status: 0, or 1 where a call failed
// or something did not start, or 2 for a wrong command line.
#include <gflags/gflags.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "benchmarks/cpu_pinning.h"
#include "benchmarks/scale_parts.h"

DEFINE_string(parts, "idle,sleeping,rates",
              "what to measure, a list: \"idle\" (idle connections), "
              "\"sleeping\" (quick calls beside handlers that sleep), "
              "\"rates\" (threads, connections, pollers)");
DEFINE_int32(connections, 1000, "idle connections");
DEFINE_int32(sleeping_calls, 8, "calls in flight whose handlers sleep");
DEFINE_double(sleep_ms, 10, "how long they sleep");
DEFINE_int32(rounds, 9, "of each comparison; medians are printed");
DEFINE_double(seconds, 0.3, "how long to measure each figure of a round");
DEFINE_double(warmup_seconds, 0.1, "how long to run before measuring");
DEFINE_double(idle_seconds, 60,
              "how long to look at idle processes; what a connection does once "
              "its calls are over is within the first 25 s");
DEFINE_bool(json, false, "print JSON, one object a line, instead of tables");
DEFINE_string(cpus, "",
              "CLIENTS,SERVERS: the CPUs to bind the processes to; default: "
              "the first two allowed ones; \"none\": bind nothing, which suits "
              "--parts=rates where there are more");
DEFINE_string(device, "soft",
              "\"soft\" (the software device), \"auto\", or a verbs device's "
              "name");
DEFINE_string(host, "127.0.0.1", "where the servers listen");
DEFINE_int64(spin_us, -1,
             "how long a thread polls before it sleeps; -1: the default");
DEFINE_string(role, "", "internal: what this process is");
DEFINE_string(address, "", "internal: the server that a further client calls");
DEFINE_int32(pollers, 1, "internal: how many pollers the server has");
DEFINE_int32(control_fd, -1, "internal: where the first process is heard");

namespace benchmarks {
namespace {

constexpr char kUsage[] =
    "measures what many connections, threads and blocking handlers cost.\n\n"
    "  scale_bench\n"
    "  scale_bench --parts=idle --connections=4000 --json\n\n"
    "The last line is {\"summary\": {...}}: idle_cpu_percent, of one CPU, is "
    "what a server with idle connections takes; idle_connections_slow_down, "
    "what they add to a round trip of 64 B on another connection (0.05: 5%); "
    "blocked_p99_ratio, by how much the p99 of quick calls grows beside "
    "handlers that sleep (1: not at all).";

using Part = absl::Status (*)(const ScaleSettings&, ScaleReport&);

const std::map<std::string, Part>& Parts() {
  static const auto* const parts =
      new std::map<std::string, Part>{{"idle", &MeasureIdleConnections},
                                      {"sleeping", &MeasureSleepingHandlers},
                                      {"rates", &MeasureRates}};
  return *parts;
}

int Fail(const absl::Status& status, int exit_status = 1) {
  absl::FPrintF(stderr, "scale_bench: %s\n", status.ToString());
  return exit_status;
}

EndpointSettings EndpointOfFlags() {
  return {.device = FLAGS_device,
          .spin_us = FLAGS_spin_us,
          .pollers = FLAGS_pollers};
}

ScaleSettings SettingsOfFlags(const std::vector<int>& cpus) {
  return {.endpoint = EndpointOfFlags(),
          .host = FLAGS_host,
          .cpus = cpus,
          .flags = {absl::StrCat("--device=", FLAGS_device),
                    absl::StrCat("--host=", FLAGS_host),
                    absl::StrCat("--spin_us=", FLAGS_spin_us)},
          .connections = FLAGS_connections,
          .rounds = FLAGS_rounds,
          .sleeping = {.calls = FLAGS_sleeping_calls,
                       .sleep = absl::Milliseconds(FLAGS_sleep_ms)},
          .warm_up = absl::Seconds(FLAGS_warmup_seconds),
          .time = absl::Seconds(FLAGS_seconds),
          .idle_time = absl::Seconds(FLAGS_idle_seconds)};
}

absl::Status CheckFlags() {
  for (const auto name : absl::StrSplit(FLAGS_parts, ',')) {
    if (!Parts().contains(std::string(name))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--parts=", FLAGS_parts, ": takes idle, sleeping and rates"));
    }
  }
  if (FLAGS_connections < 1 || FLAGS_sleeping_calls < 1 || FLAGS_rounds < 1 ||
      !(FLAGS_seconds > 0) || !(FLAGS_idle_seconds > 0) ||
      !(FLAGS_sleep_ms > 0) || !(FLAGS_warmup_seconds >= 0)) {
    return absl::InvalidArgumentError(
        "--connections, --sleeping_calls, --sleep_ms, --rounds, --seconds and "
        "--idle_seconds must be more than 0, --warmup_seconds at least 0");
  }
  return absl::OkStatus();
}

int Measure() {
  const auto cpus = CpusForTwo(FLAGS_cpus);
  for (const absl::Status& status : {CheckFlags(), cpus.status()}) {
    if (!status.ok()) return Fail(status, 2);
  }
  // Before the first thread starts, so that all are bound.
  if (!cpus->empty()) {
    const absl::Status pinned = PinTo(cpus->front());
    if (!pinned.ok()) return Fail(pinned);
  }
  const ScaleSettings settings = SettingsOfFlags(*cpus);
  ScaleReport report(FLAGS_json, stdout);
  for (const auto name : absl::StrSplit(FLAGS_parts, ',')) {
    const absl::Status status = Parts().at(std::string(name))(settings, report);
    if (!status.ok()) return Fail(status);
  }
  report.PrintSummary();
  return 0;
}

int Main(int argc) {
  if (argc > 1) {
    absl::FPrintF(stderr, "scale_bench takes flags only: see --help\n");
    return 2;
  }
  if (FLAGS_role == "server") {
    return ServeParent(FLAGS_control_fd, FLAGS_host, EndpointOfFlags());
  }
  if (FLAGS_role == "client") {
    return ServeScaleParent(FLAGS_control_fd, FLAGS_address, EndpointOfFlags());
  }
  return Measure();
}

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  gflags::SetUsageMessage(benchmarks::kUsage);
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  return benchmarks::Main(argc);
}
