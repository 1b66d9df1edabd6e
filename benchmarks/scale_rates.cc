// Rates: many threads on a channel, many channels, many busy connections,
// several pollers.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "benchmarks/scale_parts.h"

namespace benchmarks {
namespace {

constexpr int kThreads[] = {1, 2, 4, 8};
constexpr int kConnections[] = {1, 16, 256};
constexpr int kPollers[] = {1, 2, 4};
// Of all connections together.
constexpr int kInFlight = 256;
constexpr int kConnectionsOfPollers = 16;
// Many threads and connections take a while to find their pace: fewer rounds,
// and longer ones.
constexpr int kLonger = 3;

using Channels = std::vector<std::shared_ptr<rpc::Channel>>;

// A round: what all workloads made together, and the slowest and the fastest.
struct Rates {
  double total = 0;
  double lowest = 0;
  double highest = 0;
};

// Runs the workload once on each channel at the same time.
absl::StatusOr<Rates> RunOnAll(const WorkloadOptions& workload,
                               const Channels& channels) {
  std::vector<absl::StatusOr<Measurement>> results;
  for (size_t i = 0; i < channels.size(); ++i) {
    results.emplace_back(absl::UnknownError("not run"));
  }
  std::vector<std::thread> threads;
  for (size_t i = 0; i < channels.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = RunWorkload(workload, channels[i]); });
  }
  for (std::thread& thread : threads) thread.join();

  Rates rates;
  for (const absl::StatusOr<Measurement>& result : results) {
    if (!result.ok()) return result.status();
    if (result->errors > 0) return absl::UnavailableError(result->first_error);
    const double rate = result->RatePerSecond();
    rates.lowest = rates.total == 0 ? rate : std::min(rates.lowest, rate);
    rates.highest = std::max(rates.highest, rate);
    rates.total += rate;
  }
  return rates;
}

absl::Status Measure(const ScaleSettings& settings,
                     const WorkloadOptions& workload, const Channels& channels,
                     const std::string& part, const std::string& what,
                     ScaleReport& report) {
  std::vector<double> total;
  std::vector<double> lowest;
  std::vector<double> highest;
  for (int round = 0; round < settings.rounds; round += kLonger) {
    const absl::StatusOr<Rates> rates = RunOnAll(workload, channels);
    if (!rates.ok()) return rates.status();
    total.push_back(rates->total);
    lowest.push_back(rates->lowest);
    highest.push_back(rates->highest);
  }
  report.Print(part, what,
               {{"calls/s", Median(total)},
                {"slowest", Median(lowest)},
                {"fastest", Median(highest)}});
  return absl::OkStatus();
}

absl::StatusOr<Channels> OpenChannels(const ScaleSettings& settings,
                                      const std::string& address, int count,
                                      int pollers = 1) {
  EndpointSettings endpoint = settings.endpoint;
  endpoint.pollers = pollers;
  Channels channels;
  for (int i = 0; i < count; ++i) {
    auto channel = OpenConnection(address, ChannelArgumentsOf(endpoint));
    if (!channel.ok()) return channel.status();
    channels.push_back(*std::move(channel));
  }
  return channels;
}

WorkloadOptions WorkloadOf(const ScaleSettings& settings, Mode mode,
                           int concurrency) {
  return {.mode = mode,
          .payload_bytes = 64,
          .concurrency = concurrency,
          .warm_up = kLonger * settings.warm_up,
          .time = kLonger * settings.time};
}

absl::Status MeasureThreads(const ScaleSettings& settings,
                            const std::string& address, ScaleReport& report) {
  const WorkloadOptions workload = WorkloadOf(settings, Mode::kLatency, 1);
  absl::StatusOr<Channels> channels =
      OpenChannels(settings, address, *std::rbegin(kThreads));
  if (!channels.ok()) return channels.status();
  for (const bool own : {false, true}) {
    const std::string part = own ? "threads that block, a channel each"
                                 : "threads that block, one channel";
    for (const int threads : kThreads) {
      Channels used(channels->begin(), channels->begin() + threads);
      if (!own) std::fill(used.begin(), used.end(), channels->front());
      absl::Status status = Measure(
          settings, workload, used, part,
          absl::StrCat(threads, threads == 1 ? " thread" : " threads"), report);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureConnections(const ScaleSettings& settings,
                                const std::string& address,
                                ScaleReport& report) {
  for (const int connections : kConnections) {
    const absl::StatusOr<Channels> channels =
        OpenChannels(settings, address, connections);
    if (!channels.ok()) return channels.status();
    absl::Status status = Measure(
        settings, WorkloadOf(settings, Mode::kRate, kInFlight / connections),
        *channels, absl::StrCat("connections, ", kInFlight, " calls in flight"),
        absl::StrCat(connections,
                     connections == 1 ? " connection" : " connections"),
        report);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status MeasurePollers(const ScaleSettings& settings,
                            ScaleReport& report) {
  for (const int pollers : kPollers) {
    const absl::StatusOr<ServerProcess> server =
        StartScaleServer(settings, pollers);
    if (!server.ok()) return server.status();
    const absl::StatusOr<Channels> channels = OpenChannels(
        settings, server->address(), kConnectionsOfPollers, pollers);
    if (!channels.ok()) return channels.status();
    absl::Status status = Measure(
        settings,
        WorkloadOf(settings, Mode::kRate, kInFlight / kConnectionsOfPollers),
        *channels,
        absl::StrCat("pollers on each side, ", kConnectionsOfPollers, " conn."),
        absl::StrCat(pollers, pollers == 1 ? " poller" : " pollers"), report);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureRates(const ScaleSettings& settings, ScaleReport& report) {
  const absl::StatusOr<ServerProcess> server = StartScaleServer(settings);
  if (!server.ok()) return server.status();
  absl::Status status = MeasureThreads(settings, server->address(), report);
  if (status.ok()) {
    status = MeasureConnections(settings, server->address(), report);
  }
  if (status.ok()) status = MeasurePollers(settings, report);
  return status;
}

}  // namespace benchmarks
