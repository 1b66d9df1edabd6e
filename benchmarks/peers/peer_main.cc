#include "benchmarks/peers/peer_main.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/cpu_pinning.h"
#include "benchmarks/measurement_json.h"
#include "benchmarks/size_list.h"
#include "gflags/gflags.h"
#include "nlohmann/json.hpp"

DEFINE_string(mode, "latency",
              "latency (one echo after the other), rate (--concurrency echoes "
              "in flight), bandwidth (the same, but the payload goes one way)");
DEFINE_string(payload_bytes, "64",
              "bytes of the payload; a list, such as 64,1K");
DEFINE_string(concurrency, "", "calls in flight, 1 by default; a list");
DEFINE_string(working_set_bytes, "0",
              "let payloads take turns out of so much memory; 0: one for all");
DEFINE_double(seconds, 3, "how long to measure each combination");
DEFINE_double(warmup_seconds, 0.5, "how long to run before measuring");
DEFINE_string(cpus, "",
              "CLIENT,SERVER: the CPUs to bind the two processes to; default: "
              "the first two allowed ones");

namespace benchmarks {
namespace {

using Mode = PeerWorkload::Mode;

constexpr char kFailed[] = "failed ";

int Fail(const absl::Status& status) {
  absl::FPrintF(stderr, "%s: %s\n", gflags::ProgramInvocationShortName(),
                status.ToString());
  return 1;
}

absl::StatusOr<Mode> ParseMode(const std::string& text) {
  if (text == "latency") return Mode::kLatency;
  if (text == "rate") return Mode::kRate;
  if (text == "bandwidth") return Mode::kBandwidth;
  return absl::InvalidArgumentError(
      absl::StrCat("--mode=", text, ": takes latency, rate or bandwidth"));
}

absl::StatusOr<std::vector<PeerWorkload>> WorkloadsOfFlags() {
  const absl::StatusOr<Mode> mode = ParseMode(FLAGS_mode);
  const auto sizes = ParseSizes("payload_bytes", FLAGS_payload_bytes);
  const auto in_flight = ParseSizes(
      "concurrency", FLAGS_concurrency.empty() ? "1" : FLAGS_concurrency);
  const auto sets = ParseSizes("working_set_bytes", FLAGS_working_set_bytes);
  for (const absl::Status& status :
       {mode.status(), sizes.status(), in_flight.status(), sets.status()}) {
    if (!status.ok()) return status;
  }
  std::vector<PeerWorkload> workloads;
  for (const uint64_t bytes : *sizes) {
    for (const uint64_t concurrency : *in_flight) {
      for (const uint64_t set : *sets) {
        workloads.push_back({*mode, static_cast<size_t>(bytes),
                             static_cast<int>(concurrency), set});
      }
    }
  }
  return workloads;
}

absl::StatusOr<std::vector<int>> ChooseCpus() {
  if (FLAGS_cpus.empty()) {
    const std::vector<int> allowed = AllowedCpus();
    if (allowed.size() < 2) {
      return absl::FailedPreconditionError("two CPUs are needed");
    }
    return std::vector<int>{allowed[0], allowed[1]};
  }
  const auto cpus = ParseSizes("cpus", FLAGS_cpus);
  if (!cpus.ok()) return cpus.status();
  if (cpus->size() != 2) {
    return absl::InvalidArgumentError("--cpus takes CLIENT,SERVER");
  }
  return std::vector<int>(cpus->begin(), cpus->end());
}

void WriteLine(int fd, const std::string& text) {
  const std::string line = absl::StrCat(text, "\n");
  [[maybe_unused]] const ssize_t sent =
      send(fd, line.data(), line.size(), MSG_NOSIGNAL);
}

std::string ReadLine(int fd) {
  std::string line;
  char c;
  while (true) {
    const ssize_t count = read(fd, &c, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || c == '\n') return line;
    line.push_back(c);
  }
}

int RunServer(Peer& peer, int cpu, int fd, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1;
  absl::Status status = PinTo(cpu);
  if (status.ok()) {
    status = peer.Serve(
        [fd](const std::string& address) { WriteLine(fd, address); }, fd);
  }
  if (status.ok()) return 0;
  WriteLine(fd, absl::StrCat(kFailed, status.ToString()));
  return 1;
}

std::string JsonLine(const Peer& peer, const PeerWorkload& workload,
                     const Measurement& measurement,
                     const std::vector<int>& cpus) {
  const double ways = workload.mode == Mode::kBandwidth ? 1 : 2;
  nlohmann::ordered_json line = {
      {"mode", FLAGS_mode},
      {"payload_bytes", workload.payload_bytes},
      {"concurrency", workload.concurrency},
      {"working_set_bytes", workload.working_set_bytes},
  };
  AddFigures(measurement, ways * static_cast<double>(workload.payload_bytes),
             &line);
  line["device"] = peer.name();
  line["cpus"] = cpus;
  return line.dump();
}

int RunClient(Peer& peer, const std::vector<PeerWorkload>& workloads,
              const std::vector<int>& cpus, int fd, pid_t server) {
  const std::string address = ReadLine(fd);
  if (address.empty() || address.starts_with(kFailed)) {
    return Fail(absl::UnavailableError(
        absl::StrCat("the server did not start: ", address)));
  }
  absl::Status status = PinTo(cpus[0]);
  if (status.ok()) status = peer.Connect(address);
  if (!status.ok()) return Fail(status);
  int result = 0;
  for (const PeerWorkload& workload : workloads) {
    if (status = peer.Prepare(workload); !status.ok()) return Fail(status);
    Recorder recorder({.warm_up = absl::Seconds(FLAGS_warmup_seconds),
                       .time = absl::Seconds(FLAGS_seconds),
                       .server = server});
    if (status = peer.Run(workload, recorder); !status.ok())
      return Fail(status);
    const Measurement measurement = recorder.Finish();
    absl::PrintF("%s\n", JsonLine(peer, workload, measurement, cpus));
    std::fflush(stdout);
    if (measurement.errors > 0) result = 1;
  }
  return result;
}

}  // namespace

int PeerMain(int argc, char** argv, Peer& peer) {
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  const auto workloads = WorkloadsOfFlags();
  const auto cpus = ChooseCpus();
  for (const absl::Status& status : {workloads.status(), cpus.status()}) {
    if (status.ok()) continue;
    Fail(status);
    return 2;
  }
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return Fail(absl::ErrnoToStatus(errno, "socketpair"));
  }
  const pid_t parent = getpid();
  const pid_t server = fork();
  if (server < 0) return Fail(absl::ErrnoToStatus(errno, "fork"));
  if (server == 0) {
    close(fds[0]);
    const int status = RunServer(peer, (*cpus)[1], fds[1], parent);
    std::fflush(stdout);
    _exit(status);
  }
  close(fds[1]);
  const int status = RunClient(peer, *workloads, *cpus, fds[0], server);
  close(fds[0]);
  while (waitpid(server, nullptr, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace benchmarks
