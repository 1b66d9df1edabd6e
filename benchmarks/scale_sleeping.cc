// Handlers that sleep: what they cost quick calls of another connection, of
// another process, on the same server and service.
//
// Quick calls are measured in turns without and with them. Calls that are made
// one after the other hardly see a server that stands still for milliseconds,
// for few of them are under way then, so their rate is printed, too.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "benchmarks/scale_parts.h"

namespace benchmarks {
namespace {

// Of several rounds.
struct QuickCalls {
  std::vector<double> p50_ns;
  std::vector<double> p99_ns;
  std::vector<double> p999_ns;
  std::vector<double> rate;

  void Add(const Measurement& measurement) {
    const LatencyHistogram& latencies = *measurement.latencies;
    p50_ns.push_back(static_cast<double>(latencies.PercentileNs(0.5)));
    p99_ns.push_back(static_cast<double>(latencies.PercentileNs(0.99)));
    p999_ns.push_back(static_cast<double>(latencies.PercentileNs(0.999)));
    rate.push_back(measurement.RatePerSecond());
  }

  void Print(const std::string& what, ScaleReport& report) const {
    report.Print("quick calls beside sleeping handlers", what,
                 {{"p50, ns", Median(p50_ns)},
                  {"p99, ns", Median(p99_ns)},
                  {"p99.9, ns", Median(p999_ns)},
                  {"calls/s", Median(rate)}});
  }
};

struct Scene {
  const ScaleSettings& settings;
  OtherClient other;
  std::shared_ptr<rpc::Channel> channel;

  // With no others where `calls` has none.
  absl::Status Add(const SleepingCalls& calls, QuickCalls& to) {
    if (calls.calls > 0) {
      absl::Status started = other.KeepAsleep(calls);
      if (!started.ok()) return started;
    }
    const auto measured = MeasureRoundTrips(settings, channel);
    if (!measured.ok()) return measured.status();
    to.Add(*measured);
    return calls.calls > 0 ? other.Stop() : absl::OkStatus();
  }

  // One after the other, round by round.
  absl::Status Compare(const SleepingCalls& base, const SleepingCalls& load,
                       QuickCalls& beside_base, QuickCalls& beside_load) {
    for (int round = 0; round < settings.rounds; ++round) {
      absl::Status status = Add(base, beside_base);
      if (status.ok()) status = Add(load, beside_load);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::Status MeasureSleepingHandlers(const ScaleSettings& settings,
                                     ScaleReport& report) {
  const absl::StatusOr<ServerProcess> server = StartScaleServer(settings);
  if (!server.ok()) return server.status();
  absl::StatusOr<OtherClient> other =
      StartOtherClient(settings, server->address());
  if (!other.ok()) return other.status();
  auto channel =
      OpenConnection(server->address(), ChannelArgumentsOf(settings.endpoint));
  if (!channel.ok()) return channel.status();
  Scene scene = {settings, *std::move(other), *std::move(channel)};

  SleepingCalls calls = settings.sleeping;
  const std::string in_flight = absl::StrCat(calls.calls, " in flight");
  QuickCalls alone;
  QuickCalls beside;
  absl::Status status = scene.Compare({.calls = 0}, calls, alone, beside);
  if (!status.ok()) return status;
  alone.Print("alone", report);
  beside.Print(absl::StrCat(in_flight, ", all sleep ",
                            absl::FormatDuration(calls.sleep)),
               report);
  report.SetSummary("blocked_p99_ratio",
                    Median(beside.p99_ns) / Median(alone.p99_ns));

  // Those that do not sleep keep both CPUs busy, so they are the base here.
  SleepingCalls quick = calls;
  quick.sleep = absl::ZeroDuration();
  calls.every = 20;
  QuickCalls beside_quick;
  QuickCalls beside_mixed;
  status = scene.Compare(quick, calls, beside_quick, beside_mixed);
  if (!status.ok()) return status;
  beside_quick.Print(absl::StrCat(in_flight, ", none sleeps"), report);
  beside_mixed.Print(
      absl::StrCat(in_flight, ", one in ", calls.every, " sleeps ",
                   absl::FormatDuration(calls.sleep)),
      report);
  return absl::OkStatus();
}

}  // namespace benchmarks
