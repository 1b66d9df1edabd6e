// Idle connections: what they cost by themselves, and what they cost others.
//
// Two servers on the same CPU, one of which gets the idle connections, are
// called in turns by one client; who is not called sleeps. Two processes are
// never quite alike (their memory lies elsewhere), so the pair is also compared
// before the connections are opened, and the slow-down is the one ratio divided
// by the other; of several pairs, the median.
#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "benchmarks/cpu_time.h"
#include "benchmarks/scale_parts.h"

namespace benchmarks {
namespace {

// Until whatever opening took has settled: windows shrink after a second of
// silence, and before that the threads go to sleep.
constexpr absl::Duration kSettle = absl::Seconds(3);

constexpr int kPairs = 3;
// A host's CPUs change their distance, and speed, from one second to the next:
// the two of a pair are called in short turns, each in so many of a round.
constexpr int kTurns = 10;

struct Pair {
  ServerProcess with;
  ServerProcess without;
  std::shared_ptr<rpc::Channel> to_with;
  std::shared_ptr<rpc::Channel> to_without;
};

absl::StatusOr<Pair> StartPair(const ScaleSettings& settings) {
  absl::StatusOr<ServerProcess> with = StartScaleServer(settings);
  if (!with.ok()) return with.status();
  absl::StatusOr<ServerProcess> without = StartScaleServer(settings);
  if (!without.ok()) return without.status();
  const rpc::ChannelArguments arguments = ChannelArgumentsOf(settings.endpoint);
  auto to_with = OpenConnection(with->address(), arguments);
  if (!to_with.ok()) return to_with.status();
  auto to_without = OpenConnection(without->address(), arguments);
  if (!to_without.ok()) return to_without.status();
  return Pair{*std::move(with), *std::move(without), *std::move(to_with),
              *std::move(to_without)};
}

double PercentOfOneCpu(int64_t cpu_ns, absl::Duration time) {
  return 100 * static_cast<double>(cpu_ns) / absl::ToDoubleNanoseconds(time);
}

absl::Status MeasureCpu(const ScaleSettings& settings, pid_t server,
                        pid_t client, ScaleReport& report) {
  absl::SleepFor(kSettle);
  const absl::Time begin = absl::Now();
  const int64_t server_ns = ProcessCpuTimeNs(server);
  const int64_t client_ns = ProcessCpuTimeNs(client);
  absl::SleepFor(settings.idle_time);
  const absl::Duration time = absl::Now() - begin;
  if (server_ns < 0 || client_ns < 0) {
    return absl::InternalError("clock_getcpuclockid fails");
  }
  const double percent =
      PercentOfOneCpu(ProcessCpuTimeNs(server) - server_ns, time);
  report.Print("idle CPU, % of one",
               absl::StrCat(settings.connections, " idle connections"),
               {{"server", percent},
                {"their client",
                 PercentOfOneCpu(ProcessCpuTimeNs(client) - client_ns, time)}});
  report.SetSummary("idle_cpu_percent", percent);
  return absl::OkStatus();
}

// Returns the median of the turns' ratios of the medians: with divided by
// without.
absl::StatusOr<double> ComparePair(const ScaleSettings& settings,
                                   const Pair& pair, const std::string& what,
                                   ScaleReport& report) {
  ScaleSettings turn_settings = settings;
  turn_settings.time /= kTurns;
  turn_settings.warm_up /= kTurns;
  std::vector<double> ratios;
  std::vector<double> with_ns;
  std::vector<double> without_ns;
  // The rounds are shared among the pairs.
  const int turns = (settings.rounds + kPairs - 1) / kPairs * kTurns;
  for (int turn = 0; turn < turns; ++turn) {
    double p50_ns[2] = {};
    for (int i = 0; i < 2; ++i) {
      // Either is the first one every other time.
      const int which = (i + turn) % 2;
      const auto measured = MeasureRoundTrips(
          turn_settings, which == 0 ? pair.to_with : pair.to_without);
      if (!measured.ok()) return measured.status();
      p50_ns[which] =
          static_cast<double>(measured->latencies->PercentileNs(0.5));
    }
    with_ns.push_back(p50_ns[0]);
    without_ns.push_back(p50_ns[1]);
    ratios.push_back(p50_ns[0] / p50_ns[1]);
  }
  const double ratio = Median(ratios);
  report.Print("round trip of 64 B, p50", what,
               {{"with, ns", Median(with_ns)},
                {"without, ns", Median(without_ns)},
                {"ratio", ratio}});
  return ratio;
}

// Adds to `slow_downs`, and measures the CPU time where it is the first.
absl::Status MeasurePair(const ScaleSettings& settings, ScaleReport& report,
                         std::vector<double>& slow_downs) {
  const absl::StatusOr<Pair> pair = StartPair(settings);
  if (!pair.ok()) return pair.status();
  absl::StatusOr<OtherClient> other =
      StartOtherClient(settings, pair->with.address());
  if (!other.ok()) return other.status();

  const auto before = ComparePair(settings, *pair, "neither has any", report);
  if (!before.ok()) return before.status();
  absl::Status status = other->Open(settings.connections);
  if (status.ok() && slow_downs.empty()) {
    status = MeasureCpu(settings, pair->with.pid(), other->pid(), report);
  }
  if (!status.ok()) return status;
  const auto after = ComparePair(
      settings, *pair,
      absl::StrCat("one has ", settings.connections, " idle connections"),
      report);
  if (!after.ok()) return after.status();
  slow_downs.push_back(*after / *before - 1);
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureIdleConnections(const ScaleSettings& settings,
                                    ScaleReport& report) {
  std::vector<double> slow_downs;
  for (int i = 0; i < kPairs; ++i) {
    absl::Status status = MeasurePair(settings, report, slow_downs);
    if (!status.ok()) return status;
  }
  report.SetSummary("idle_connections_slow_down", Median(slow_downs));
  return absl::OkStatus();
}

}  // namespace benchmarks
