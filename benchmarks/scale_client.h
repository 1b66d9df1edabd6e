// The other clients of scale_bench: a process that holds idle connections, or
// keeps handlers asleep, beside the client that measures.
//
//   absl::StatusOr<OtherClient> other = OtherClient::Start(address, flags, 0);
//   absl::Status status = other->Open(1000);   // connections
//   status = other->KeepAsleep({.calls = 8});  // until Stop
//   status = other->Stop();
//
// Both sides are here: OtherClient is the parent's, ServeScaleParent what the
// child runs (child_process.h).
//
// Thread rule: as ChildProcess.
#ifndef VERBENA_BENCHMARKS_SCALE_CLIENT_H_
#define VERBENA_BENCHMARKS_SCALE_CLIENT_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmarks/child_process.h"
#include "benchmarks/rpc_bench_server.h"
#include "rpc/rpc.h"

namespace benchmarks {

// Calls of Sleep that are always in flight, on one connection.
struct SleepingCalls {
  int calls = 8;
  absl::Duration sleep = absl::Milliseconds(10);
  // One handler in so many sleeps, the others return at once. Those that all
  // sleep are soon known to; those that rarely do are not.
  int every = 1;
};

class OtherClient {
 public:
  // Runs this program again with `flags`, which tell it to call
  // ServeScaleParent for `address`, bound to `cpu` (none: as this thread).
  static absl::StatusOr<OtherClient> Start(
      const std::string& address, const std::vector<std::string>& flags,
      std::optional<int> cpu);

  // Opens so many further connections, with one call on each.
  absl::Status Open(int connections);
  // Returns when the first calls are on their way.
  absl::Status KeepAsleep(const SleepingCalls& calls);
  // Returns when none is in flight any more; the error of one, if any failed.
  absl::Status Stop();

  pid_t pid() const { return child_.pid(); }

 private:
  explicit OtherClient(ChildProcess child) : child_(std::move(child)) {}

  ChildProcess child_;
};

// Obeys the parent until it closes `control_fd`. Returns the process's exit
// status.
int ServeScaleParent(int control_fd, const std::string& address,
                     const EndpointSettings& settings);

// A channel with a connection of its own, which is open. UNAVAILABLE: it could
// not be opened.
absl::StatusOr<std::shared_ptr<rpc::Channel>> OpenConnection(
    const std::string& address, rpc::ChannelArguments arguments);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_SCALE_CLIENT_H_
