// `rpc_bench` measures calls between two processes; see `rpc_bench --help`.
//
// It starts its server itself, before it has any thread, binds the two
// processes to different CPUs, and runs one workload for each combination of
// the lists that it is given. Results go to stdout, everything else to stderr.
// Exit status: 0, or 1 where a call failed or something did not start, or 2 for
// a wrong command line.
#include <gflags/gflags.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/cpu_pinning.h"
#include "benchmarks/rpc_bench.rpc.pb.h"
#include "benchmarks/rpc_bench_report.h"
#include "benchmarks/rpc_bench_server.h"
#include "benchmarks/rpc_bench_workload.h"
#include "benchmarks/size_list.h"
#include "rpc/rpc.h"

DEFINE_string(mode, "latency",
              "what to measure, a list: \"latency\" (blocking Echo, one call "
              "at a time), \"rate\" (Echo by the callback API, --concurrency "
              "calls in flight), \"bandwidth\" (Put, the payload goes one "
              "way, --concurrency calls in flight), \"fetch\" (blocking Get, "
              "the payload comes the other way, one call at a time)");
DEFINE_string(payload_bytes, "64",
              "bytes of payload in each request, a list; K, M and G multiply "
              "by 1024");
DEFINE_string(concurrency, "",
              "calls in flight, a list; default: 64 for rate, 2 for bandwidth, "
              "and always 1 for latency and fetch");
DEFINE_bool(attachment, false,
            "send the payload as an attachment, not in the message");
DEFINE_string(working_set_bytes, "0",
              "let payloads take turns out of this much memory, so that they "
              "come from memory and not from a cache; 0: one payload for all");
DEFINE_int64(
    pause_us, 0,
    "latency, fetch: sleep so long after each call, so that both sides "
    "run out of work");
DEFINE_int64(timeout_ms, 0,
             "give each call a deadline, so long after its start; 0: none");
DEFINE_double(seconds, 3, "how long to measure each combination");
DEFINE_double(warmup_seconds, 0.5, "how long to run before measuring");
DEFINE_bool(json, false, "print JSON, one object a line, instead of a table");
DEFINE_string(cpus, "",
              "CLIENT,SERVER: the CPUs to bind the two processes to; default: "
              "the first two allowed ones; \"none\": bind nothing");
DEFINE_string(device, "auto",
              "\"auto\", \"soft\" (the software device, same host), or a verbs "
              "device's name");
DEFINE_int64(spin_us, -1,
             "how long a thread polls before it sleeps; -1: the default");
DEFINE_int64(eager_limit_bytes, 0,
             "larger messages go by rendezvous; 0: the default");
DEFINE_int64(receive_budget_bytes, 0,
             "memory for receives of each side, half of which is for windows "
             "to grow into; 0: the default");
DEFINE_string(address, "",
              "measure against a server that runs already (see --serve), at "
              "rdma://HOST:PORT, instead of starting one");
DEFINE_string(server_host, "127.0.0.1",
              "where the server that this starts listens");
DEFINE_string(server_device, "",
              "the device of the server that this starts; default: --device");
DEFINE_string(serve, "",
              "measure nothing; serve on rdma://HOST:PORT until SIGINT");
DEFINE_int32(control_fd, -1,
             "internal: this process is the server that a client started");

namespace benchmarks {
namespace {

constexpr char kUsage[] =
    "measures calls between two processes.\n\n"
    "  rpc_bench --mode=latency --payload_bytes=64 --seconds=3 --json\n"
    "  rpc_bench --mode=rate --concurrency=1,16,64\n"
    "  rpc_bench --mode=bandwidth --payload_bytes=64K,1M,64M --attachment\n\n"
    "GB/s are 10^9 bytes of payload that were moved a second, both ways for "
    "Echo.";

constexpr absl::Duration kConnectTimeout = absl::Seconds(10);

int Fail(const absl::Status& status) {
  absl::FPrintF(stderr, "rpc_bench: %s\n", status.ToString());
  return 1;
}

absl::Status BadFlag(const std::string& flag, const std::string& value,
                     const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": ", what));
}

absl::StatusOr<std::vector<Mode>> ParseModes(const std::string& text) {
  std::vector<Mode> modes;
  for (const auto word : absl::StrSplit(text, ',')) {
    bool known = false;
    for (const Mode mode :
         {Mode::kLatency, Mode::kRate, Mode::kBandwidth, Mode::kFetch}) {
      if (word != ModeName(mode)) continue;
      modes.push_back(mode);
      known = true;
    }
    if (!known) {
      return BadFlag("mode", text, "takes latency, rate, bandwidth and fetch");
    }
  }
  return modes;
}

// Empty where the mode's own number is to be taken.
absl::StatusOr<std::vector<int>> ParseConcurrency(const std::string& text) {
  std::vector<int> numbers;
  if (text.empty()) return numbers;
  for (const auto word : absl::StrSplit(text, ',')) {
    int number = 0;
    if (!absl::SimpleAtoi(word, &number) || number < 1 || number > 100'000) {
      return BadFlag("concurrency", text, "takes numbers from 1 to 100000");
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<int> ConcurrencyOf(Mode mode, const std::vector<int>& asked) {
  if (mode == Mode::kLatency || mode == Mode::kFetch) return {1};
  if (!asked.empty()) return asked;
  return {mode == Mode::kRate ? 64 : 2};
}

absl::StatusOr<std::vector<WorkloadOptions>> WorkloadsOfFlags() {
  const auto modes = ParseModes(FLAGS_mode);
  if (!modes.ok()) return modes.status();
  const auto sizes = ParseSizes("payload_bytes", FLAGS_payload_bytes);
  if (!sizes.ok()) return sizes.status();
  const auto concurrency = ParseConcurrency(FLAGS_concurrency);
  if (!concurrency.ok()) return concurrency.status();
  const auto working_set =
      ParseSizes("working_set_bytes", FLAGS_working_set_bytes);
  if (!working_set.ok()) return working_set.status();
  if (!(FLAGS_seconds > 0) || !(FLAGS_warmup_seconds >= 0) ||
      FLAGS_pause_us < 0 || FLAGS_timeout_ms < 0) {
    return absl::InvalidArgumentError(
        "--seconds must be more than 0, --warmup_seconds, --pause_us and "
        "--timeout_ms at least 0");
  }
  std::vector<WorkloadOptions> workloads;
  for (const Mode mode : *modes) {
    if (mode == Mode::kFetch &&
        (FLAGS_attachment || working_set->front() != 0)) {
      return BadFlag("mode", FLAGS_mode,
                     "fetch has neither --attachment nor --working_set_bytes");
    }
    for (const uint64_t bytes : *sizes) {
      for (const int in_flight : ConcurrencyOf(mode, *concurrency)) {
        workloads.push_back(
            {.mode = mode,
             .payload_bytes = static_cast<size_t>(bytes),
             .concurrency = in_flight,
             .attachment = FLAGS_attachment,
             .working_set_bytes = working_set->front(),
             .pause = absl::Microseconds(FLAGS_pause_us),
             .timeout = std::chrono::milliseconds(FLAGS_timeout_ms),
             .warm_up = absl::Seconds(FLAGS_warmup_seconds),
             .time = absl::Seconds(FLAGS_seconds)});
      }
    }
  }
  return workloads;
}

EndpointSettings SettingsOfFlags() {
  return {.device = FLAGS_device,
          .spin_us = FLAGS_spin_us,
          .eager_limit_bytes = FLAGS_eager_limit_bytes,
          .receive_budget_bytes = FLAGS_receive_budget_bytes};
}

std::vector<std::string> ServerFlags() {
  return {absl::StrCat("--device=", FLAGS_server_device.empty()
                                        ? FLAGS_device
                                        : FLAGS_server_device),
          absl::StrCat("--server_host=", FLAGS_server_host),
          absl::StrCat("--spin_us=", FLAGS_spin_us),
          absl::StrCat("--eager_limit_bytes=", FLAGS_eager_limit_bytes),
          absl::StrCat("--receive_budget_bytes=", FLAGS_receive_budget_bytes)};
}

// Runs all workloads against `address`; returns the exit status.
int Measure(const std::string& address, const std::vector<int>& cpus,
            const std::vector<WorkloadOptions>& workloads) {
  const std::shared_ptr<rpc::Channel> channel =
      rpc::CreateCustomChannel(address, rpc::InsecureChannelCredentials(),
                               ChannelArgumentsOf(SettingsOfFlags()));
  if (!channel->WaitForConnected(absl::Now() + kConnectTimeout)) {
    // A call says what the channel knows.
    rpc::ClientContext context;
    context.set_deadline(absl::Now() + kConnectTimeout);
    Payload answer;
    const rpc::Status why =
        Bench::NewStub(channel)->Echo(&context, Payload(), &answer);
    return Fail(absl::UnavailableError(absl::StrCat(
        "no connection within ", absl::FormatDuration(kConnectTimeout), ": ",
        why.error_message())));
  }
  Reporter reporter(FLAGS_json, stdout);
  const Setup setup = {.device = channel->device(), .cpus = cpus};
  int status = 0;
  for (const WorkloadOptions& workload : workloads) {
    const absl::StatusOr<Measurement> result = RunWorkload(workload, channel);
    if (!result.ok()) return Fail(result.status());
    reporter.Print(setup, workload, *result);
    if (result->errors == 0) continue;
    absl::FPrintF(stderr, "rpc_bench: %d errors, such as: %s\n", result->errors,
                  result->first_error);
    status = 1;
  }
  return status;
}

int StartServerAndMeasure(const std::vector<int>& cpus,
                          std::vector<WorkloadOptions> workloads) {
  std::optional<ServerProcess> server;
  std::string address = FLAGS_address;
  if (address.empty()) {
    absl::StatusOr<ServerProcess> started = ServerProcess::Start(
        FLAGS_server_host, ServerFlags(),
        cpus.empty() ? std::nullopt : std::optional(cpus[1]));
    if (!started.ok()) return Fail(started.status());
    server.emplace(*std::move(started));
    address = server->address();
    for (WorkloadOptions& workload : workloads) workload.server = server->pid();
  }
  // Before the first thread starts, so that all are bound.
  if (!cpus.empty()) {
    const absl::Status pinned = PinTo(cpus[0]);
    if (!pinned.ok()) return Fail(pinned);
  }
  return Measure(address, cpus, workloads);
}

int Main(int argc) {
  if (argc > 1) {
    absl::FPrintF(stderr, "rpc_bench takes flags only: see --help\n");
    return 2;
  }
  if (FLAGS_control_fd >= 0) {
    return ServeParent(FLAGS_control_fd, FLAGS_server_host, SettingsOfFlags());
  }
  if (!FLAGS_serve.empty()) {
    return ServeForEver(FLAGS_serve, SettingsOfFlags());
  }
  const auto workloads = WorkloadsOfFlags();
  const auto cpus = CpusForTwo(FLAGS_cpus);
  for (const absl::Status& status : {workloads.status(), cpus.status()}) {
    if (status.ok()) continue;
    Fail(status);
    return 2;
  }
  return StartServerAndMeasure(*cpus, *workloads);
}

}  // namespace
}  // namespace benchmarks

int main(int argc, char** argv) {
  gflags::SetUsageMessage(benchmarks::kUsage);
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  return benchmarks::Main(argc);
}
