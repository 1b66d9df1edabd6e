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

  // "rdma://HOST:PORT" of its servers; of the first one.
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::string& address() const { return addresses_.front(); }
  pid_t pid() const { return child_.pid(); }

 private:
  ServerProcess(ChildProcess child, std::vector<std::string> addresses)
      : child_(std::move(child)), addresses_(std::move(addresses)) {}

  ChildProcess child_;
  std::vector<std::string> addresses_;
};

// Serves on free ports of `host` until the parent closes `control_fd`: so many
// servers, each of which has a poller of its own. Returns the process's exit
// status.
int ServeParent(int control_fd, const std::string& host,
                const EndpointSettings& settings, int servers = 1);

// Serves on `address` until the process is ended by SIGINT or SIGTERM.
// Returns the process's exit status.
int ServeForEver(const std::string& address, const EndpointSettings& settings);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_SERVER_H_
