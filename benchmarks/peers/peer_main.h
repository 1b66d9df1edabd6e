// The frame of the programs that measure what Verbena is compared with: two
// processes, each bound to a CPU, and lines of JSON as rpc_bench prints them.
//
//   class GrpcPeer final : public benchmarks::Peer { ... };
//   int main(int argc, char** argv) {
//     GrpcPeer peer;
//     return benchmarks::PeerMain(argc, argv, peer);
//   }
//
// Flags: --mode=latency|rate|bandwidth, --payload_bytes, --concurrency,
// --seconds, --warmup_seconds, --working_set_bytes, --cpus=CLIENT,SERVER, and
// what the peer defines besides. Lists make a line for each combination, as
// with rpc_bench.
#ifndef VERBENA_BENCHMARKS_PEERS_PEER_MAIN_H_
#define VERBENA_BENCHMARKS_PEERS_PEER_MAIN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "benchmarks/recorder.h"

namespace benchmarks {

// What is to be measured.
struct PeerWorkload {
  enum class Mode {
    kLatency,    // one echo after the other
    kRate,       // `concurrency` echoes in flight, from one thread
    kBandwidth,  // the same, but the payload goes one way
  };
  Mode mode = Mode::kLatency;
  size_t payload_bytes = 64;
  int concurrency = 1;
  // Payloads take turns out of so much memory; 0: one for all.
  uint64_t working_set_bytes = 0;
};

class Peer {
 public:
  virtual ~Peer() = default;

  // "grpc"; the "device" of the lines, such as "unix socket".
  virtual std::string name() const = 0;

  // In the server's process, on its CPU: gets ready, calls `ready` with what
  // the client needs to connect (one line), and serves until `stop_fd` can be
  // read or hangs up.
  virtual absl::Status Serve(
      const std::function<void(const std::string& address)>& ready,
      int stop_fd) = 0;

  // In the client's process, on its CPU: once, before the workloads.
  virtual absl::Status Connect(const std::string& address) = 0;
  // Before each Run, with its workload: what takes long and is not to be
  // measured, such as writing payloads. (The warm-up begins before Run, and
  // writing 1 GiB takes longer.)
  virtual absl::Status Prepare(const PeerWorkload& /*workload*/) {
    return absl::OkStatus();
  }
  // Makes calls until recorder.Note returns false; when it returns, none is in
  // flight any more.
  virtual absl::Status Run(const PeerWorkload& workload,
                           Recorder& recorder) = 0;
};

// Forks the server before anything else is set up, and prints the lines.
int PeerMain(int argc, char** argv, Peer& peer);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_PEER_MAIN_H_
