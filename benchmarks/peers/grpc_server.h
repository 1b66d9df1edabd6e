// The server of grpc_bench: the service Bench of rpc_bench.proto.
#ifndef VERBENA_BENCHMARKS_PEERS_GRPC_SERVER_H_
#define VERBENA_BENCHMARKS_PEERS_GRPC_SERVER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "benchmarks/peers/grpc_settings.h"

namespace benchmarks {

struct GrpcServerOptions {
  std::string address;  // "unix:/tmp/..."
  GrpcApi api = GrpcApi::kCallback;
  // Put takes bytes as they are, in place of a Payload message, and answers
  // with those of a Receipt message. There is no Echo then.
  bool raw = false;
};

// Calls `ready` when clients can connect, and returns when `stop_fd` can be
// read or hangs up.
absl::Status ServeGrpc(const GrpcServerOptions& options,
                       const std::function<void()>& ready, int stop_fd);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_GRPC_SERVER_H_
