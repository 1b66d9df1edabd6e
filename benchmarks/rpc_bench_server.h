// rpc_bench's server: in a process of its own, started by the client, or by
// itself on another host.
//
//   absl::StatusOr<ServerProcess> server =
//       ServerProcess::Start("127.0.0.1", {"--device=soft"}, /*cpu=*/0);
//   channel = rpc::CreateChannel(server->address(), ...);
//
// Both sides of the start are here: ServerProcess is the parent's, ServeParent
// what the child runs (child_process.h).
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_SERVER_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/child_process.h"
#include "rpc/rpc.h"

namespace benchmarks {

// What both sides are told alike; see rpc/channel_arguments.h.
struct EndpointSettings {
  std::string device = "auto";
  int64_t spin_us = -1;
  int64_t eager_limit_bytes = 0;
  int64_t receive_budget_bytes = 0;  // 0: the default
  int64_t pollers = 1;
};
rpc::ChannelArguments ChannelArgumentsOf(const EndpointSettings& settings);

class ServerProcess {
 public:
  // Runs this program again with `flags`, which tell it to call ServeParent for
  // `host`, bound to `cpu` (none: to what this thread is). Blocks until it
  // listens, and returns its error where it cannot.
  static absl::StatusOr<ServerProcess> Start(
      const std::string& host, const std::vector<std::string>& flags,
      std::optional<int> cpu);

  // "rdma://HOST:PORT".
  const std::string& address() const { return address_; }
  pid_t pid() const { return child_.pid(); }

 private:
  ServerProcess(ChildProcess child, std::string address)
      : child_(std::move(child)), address_(std::move(address)) {}

  ChildProcess child_;
  std::string address_;
};

// Serves on a free port of `host` until the parent closes `control_fd`. Returns
// the process's exit status.
int ServeParent(int control_fd, const std::string& host,
                const EndpointSettings& settings);

// Serves on `address` until the process is ended by SIGINT or SIGTERM.
// Returns the process's exit status.
int ServeForEver(const std::string& address, const EndpointSettings& settings);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_SERVER_H_
