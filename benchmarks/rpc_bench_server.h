// rpc_bench's server: in a process of its own, started by the client, or by
// itself on another host.
//
//   absl::StatusOr<ServerProcess> server =
//       ServerProcess::Start("127.0.0.1", {"--device=soft"}, /*cpu=*/0);
//   channel = rpc::CreateChannel(server->address(), ...);
//
// Both sides of the start are here: ServerProcess is the parent's, ServeParent
// what the child runs. They talk over one socket: the child says which port it
// got (or why it got none), and ends when the parent closes its end, by
// destroying the ServerProcess or by dying.
#ifndef VERBENA_BENCHMARKS_RPC_BENCH_SERVER_H_
#define VERBENA_BENCHMARKS_RPC_BENCH_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/rpc.h"

namespace benchmarks {

// What both sides are told alike; see rpc/channel_arguments.h.
struct EndpointSettings {
  std::string device = "auto";
  int64_t spin_us = -1;
  int64_t eager_limit_bytes = 0;
};
rpc::ChannelArguments ChannelArgumentsOf(const EndpointSettings& settings);

class ServerProcess {
 public:
  // Runs this program again with `flags`, which tell it to listen on `host`,
  // and
  // --control_fd=N, bound to `cpu` (none: not bound). Blocks until it listens,
  // and returns its error where it cannot. The calling thread may be left bound
  // to `cpu`: bind it anew. REQUIRES: the process has no other thread yet.
  static absl::StatusOr<ServerProcess> Start(
      const std::string& host, const std::vector<std::string>& flags,
      std::optional<int> cpu);

  ServerProcess(ServerProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        control_fd_(std::exchange(other.control_fd_, -1)),
        address_(std::move(other.address_)) {}
  ServerProcess& operator=(ServerProcess&&) = delete;
  // Has it end in order, and waits for that.
  ~ServerProcess();

  // "rdma://HOST:PORT".
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

 private:
  ServerProcess(pid_t pid, int control_fd)
      : pid_(pid), control_fd_(control_fd) {}

  pid_t pid_;
  int control_fd_;
  std::string address_;
};

// Serves on a free port of `host` until the parent closes `control_fd`.
// Returns the process's exit status.
int ServeParent(int control_fd, const std::string& host,
                const EndpointSettings& settings);

// Serves on `address` until the process is ended by SIGINT or SIGTERM.
// Returns the process's exit status.
int ServeForEver(const std::string& address, const EndpointSettings& settings);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_RPC_BENCH_SERVER_H_
