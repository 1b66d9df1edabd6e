#include "benchmarks/rpc_bench_server.h"

#include <signal.h>

#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "benchmarks/rpc_bench_service.h"

namespace benchmarks {
namespace {

// Gives each argument's name and value to `set`.
template <typename Set>
void SetArguments(const EndpointSettings& settings, Set set) {
  set("verbena.device", settings.device);
  set("verbena.spin_us", settings.spin_us);
  set("verbena.eager_limit_bytes", settings.eager_limit_bytes);
  set("verbena.pollers", settings.pollers);
  // There is no value that stands for the default.
  if (settings.receive_budget_bytes == 0) return;
  set("verbena.receive_budget_bytes", settings.receive_budget_bytes);
}

struct RunningServer {
  BenchService service;
  int port = 0;
  std::unique_ptr<rpc::Server> server;  // goes before the service
};

absl::StatusOr<std::unique_ptr<RunningServer>> StartServer(
    const std::string& address, const EndpointSettings& settings) {
  auto running = std::make_unique<RunningServer>();
  rpc::ServerBuilder builder;
  builder.AddListeningPort(address, rpc::InsecureServerCredentials(),
                           &running->port);
  builder.RegisterService(&running->service);
  SetArguments(settings, [&](const char* name, const auto& value) {
    builder.AddChannelArgument(name, value);
  });
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder.BuildAndStartOrStatus();
  if (!server.ok()) return server.status();
  running->server = *std::move(server);
  return running;
}

// Calls that still run when a server is to end get this long.
constexpr absl::Duration kDrain = absl::Seconds(5);

}  // namespace

rpc::ChannelArguments ChannelArgumentsOf(const EndpointSettings& settings) {
  rpc::ChannelArguments arguments;
  SetArguments(settings, [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const int64_t&>) {
      arguments.SetInt64(name, value);
    } else {
      arguments.SetString(name, value);
    }
  });
  return arguments;
}

absl::StatusOr<ServerProcess> ServerProcess::Start(
    const std::string& host, const std::vector<std::string>& flags,
    std::optional<int> cpu) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(flags, cpu);
  if (!child.ok()) {
    return absl::Status(child.status().code(),
                        absl::StrCat("the server did not start: ",
                                     std::string(child.status().message())));
  }
  std::string address = absl::StrCat("rdma://", host, ":", child->greeting());
  return ServerProcess(*std::move(child), std::move(address));
}

int ServeParent(int control_fd, const std::string& host,
                const EndpointSettings& settings) {
  ParentProcess parent(control_fd);
  const absl::StatusOr<std::unique_ptr<RunningServer>> running =
      StartServer(absl::StrCat("rdma://", host, ":0"), settings);
  if (!running.ok()) {
    parent.Answer(running.status());
    return 1;
  }
  parent.Answer(absl::StrCat((*running)->port));
  parent.ReadLine();  // nothing comes: until the parent closes it
  (*running)->server->Shutdown(absl::Now() + kDrain);
  return 0;
}

int ServeForEver(const std::string& address, const EndpointSettings& settings) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Before any thread starts, so that all leave them to sigwait.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto running = StartServer(address, settings);
  if (!running.ok()) {
    absl::FPrintF(stderr, "rpc_bench: %s\n", running.status().ToString());
    return 1;
  }
  absl::FPrintF(stderr, "rpc_bench: serving on port %d (device %s)\n",
                (*running)->port, (*running)->server->device());
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  (*running)->server->Shutdown(absl::Now() + kDrain);
  return 0;
}

}  // namespace benchmarks
