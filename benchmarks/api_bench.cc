// `api_bench` measures the same calls by each API, side by side; see
// `api_bench --help`.
//
// Each server is a process of its own, which sleeps while the others are
// measured. Rounds are interleaved: each measures every pair of a server and a
// client once, so that a machine that gets busy spoils no pair alone. Results
// go to stdout, everything else to stderr. Exit status: 0, or 1 where a call
// failed or something did not start, or 2 for a wrong command line.
#include <gflags/gflags.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/api_bench_clients.h"
#include "benchmarks/api_bench_servers.h"
#include "benchmarks/child_process.h"
#include "benchmarks/cpu_pinning.h"
#include "benchmarks/latency_histogram.h"
#include "rpc/rpc.h"

DEFINE_int32(rounds, 7, "how often each pair is measured; medians are printed");
DEFINE_double(seconds, 0.3,
              "how long to measure the calls of a pair in a round");
DEFINE_int64(messages, 200'000, "of the stream of a pair in a round");
DEFINE_int64(payload_bytes, 64, "bytes of payload of each message");
DEFINE_string(cpus, "",
              "CLIENT,SERVERS: the CPUs to bind the processes to; default: the "
              "first two allowed ones; \"none\": bind nothing");
DEFINE_string(device, "soft",
              "\"soft\" (the software device), \"auto\", or a verbs device's "
              "name");
DEFINE_string(servers, "blocking,callback,queue,coroutine",
              "the servers' APIs");
DEFINE_string(clients, "blocking,callback,queue,coroutine",
              "the clients' APIs");
DEFINE_bool(routed, false,
            "give channels a second address, so that calls are routed");
DEFINE_string(server_api, "", "internal: what this process serves by");
DEFINE_int32(control_fd, -1, "internal: this process is a server");

namespace benchmarks {
namespace {

constexpr char kUsage[] =
    "measures the same calls by each API, side by side.\n\n"
    "  api_bench --rounds=7\n"
    "  api_bench --servers=blocking --clients=blocking,queue --routed\n\n"
    "A line for each pair of a server's API and a client's: the median of the "
    "rounds' p50 and p99 of a unary call, in microseconds, and of the messages "
    "a second of a stream from the server, in millions.";

// The APIs that a flag names, in order, or none where it names an unknown one.
std::vector<std::string> ApisOf(const std::string& flag) {
  constexpr std::array<std::string_view, 4> kApis = {"blocking", "callback",
                                                     "queue", "coroutine"};
  std::vector<std::string> apis = absl::StrSplit(flag, ',');
  for (const std::string& api : apis) {
    if (std::find(kApis.begin(), kApis.end(), api) == kApis.end()) return {};
  }
  return apis;
}

constexpr absl::Duration kWarmUp = absl::Milliseconds(50);
constexpr int64_t kWarmUpMessages = 1'000;

// ---- A server's process.

int Serve() {
  ParentProcess parent(FLAGS_control_fd);
  const std::unique_ptr<ApiServer> service = MakeApiServer(FLAGS_server_api);
  rpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("rdma://127.0.0.1:0",
                           rpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument("verbena.device", FLAGS_device);
  service->AddTo(builder);
  const absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder.BuildAndStartOrStatus();
  if (!server.ok()) {
    parent.Answer(server.status());
    return 1;
  }
  service->Serve();
  parent.Answer(absl::StrCat(port));
  parent.ReadLine();  // nothing comes: until the parent closes it
  (*server)->Shutdown(absl::Now());
  service->Stop();
  return 0;
}

// ---- The client's.

struct Figures {
  double p50_us;
  double p99_us;
  double messages_per_second;
};

absl::StatusOr<Figures> Measure(ApiClient& client) {
  const auto bytes = static_cast<size_t>(FLAGS_payload_bytes);
  auto latencies = std::make_unique<LatencyHistogram>();
  rpc::Status status =
      client.MakeCalls(absl::Now() + kWarmUp, bytes, latencies.get());
  if (status.ok()) status = client.ReadStream(kWarmUpMessages, bytes);
  latencies = std::make_unique<LatencyHistogram>();
  if (status.ok()) {
    status = client.MakeCalls(absl::Now() + absl::Seconds(FLAGS_seconds), bytes,
                              latencies.get());
  }
  const absl::Time begin = absl::Now();
  if (status.ok()) status = client.ReadStream(FLAGS_messages, bytes);
  const absl::Duration time = absl::Now() - begin;
  if (!status.ok()) return static_cast<absl::Status>(status);
  return Figures{
      .p50_us = static_cast<double>(latencies->PercentileNs(0.5)) / 1e3,
      .p99_us = static_cast<double>(latencies->PercentileNs(0.99)) / 1e3,
      .messages_per_second =
          static_cast<double>(FLAGS_messages) / absl::ToDoubleSeconds(time)};
}

double Median(const std::vector<Figures>& rounds, double Figures::*figure) {
  std::vector<double> values;
  for (const Figures& round : rounds) values.push_back(round.*figure);
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

// What is measured together.
struct Pair {
  std::string server;
  std::string client;
  std::unique_ptr<ApiClient> calls;
  std::vector<Figures> rounds;
};

absl::StatusOr<std::vector<ChildProcess>> StartServers(
    const std::vector<std::string>& apis, const std::vector<int>& cpus) {
  std::vector<ChildProcess> servers;
  for (const std::string& api : apis) {
    absl::StatusOr<ChildProcess> server = ChildProcess::Start(
        {absl::StrCat("--server_api=", api),
         absl::StrCat("--device=", FLAGS_device)},
        cpus.empty() ? std::nullopt : std::optional<int>(cpus[1]));
    if (!server.ok()) return server.status();
    servers.push_back(*std::move(server));
  }
  return servers;
}

std::string AddressOf(const ChildProcess& server) {
  const std::string address = absl::StrCat("127.0.0.1:", server.greeting());
  return FLAGS_routed ? absl::StrCat("rdma:///", address, ",", address)
                      : absl::StrCat("rdma://", address);
}

std::vector<Pair> PairsOf(const std::vector<std::string>& apis,
                          const std::vector<ChildProcess>& servers) {
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", FLAGS_device);
  std::vector<Pair> pairs;
  for (size_t i = 0; i < servers.size(); ++i) {
    const auto channel = rpc::CreateCustomChannel(
        AddressOf(servers[i]), rpc::InsecureChannelCredentials(), arguments);
    for (const std::string& client : ApisOf(FLAGS_clients)) {
      pairs.push_back({apis[i], client, MakeApiClient(client, channel), {}});
    }
  }
  return pairs;
}

absl::Status Run(const std::vector<int>& cpus) {
  const std::vector<std::string> apis = ApisOf(FLAGS_servers);
  absl::StatusOr<std::vector<ChildProcess>> servers = StartServers(apis, cpus);
  if (!servers.ok()) return servers.status();
  if (!cpus.empty()) {
    if (absl::Status status = PinTo(cpus[0]); !status.ok()) return status;
  }
  std::vector<Pair> pairs = PairsOf(apis, *servers);
  for (int round = 0; round < FLAGS_rounds; ++round) {
    for (Pair& pair : pairs) {
      const absl::StatusOr<Figures> figures = Measure(*pair.calls);
      if (!figures.ok()) return figures.status();
      pair.rounds.push_back(*figures);
    }
  }
  absl::PrintF("%-10s %-10s %8s %8s %10s\n", "server", "client", "p50 us",
               "p99 us", "M msgs/s");
  for (const Pair& pair : pairs) {
    absl::PrintF("%-10s %-10s %8.2f %8.2f %10.2f\n", pair.server, pair.client,
                 Median(pair.rounds, &Figures::p50_us),
                 Median(pair.rounds, &Figures::p99_us),
                 Median(pair.rounds, &Figures::messages_per_second) / 1e6);
  }
  return absl::OkStatus();
}

int Main() {
  if (FLAGS_control_fd >= 0) return Serve();
  const absl::StatusOr<std::vector<int>> cpus = CpusForTwo(FLAGS_cpus);
  if (!cpus.ok() || FLAGS_rounds < 1 || FLAGS_messages < 1 ||
      FLAGS_payload_bytes < 0 || ApisOf(FLAGS_servers).empty() ||
      ApisOf(FLAGS_clients).empty()) {
    absl::FPrintF(stderr, "api_bench: %s\n",
                  cpus.ok() ? "numbers are to be positive, APIs to be known"
                            : cpus.status().ToString());
    return 2;
  }
  const absl::Status status = Run(*cpus);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "api_bench: %s\n", status.ToString());
  return 1;
}

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  gflags::SetUsageMessage(benchmarks::kUsage);
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  return benchmarks::Main();
}
