// The client of grpc_bench.
#ifndef VERBENA_BENCHMARKS_PEERS_GRPC_CLIENT_H_
#define VERBENA_BENCHMARKS_PEERS_GRPC_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/peers/grpc_settings.h"
#include "benchmarks/peers/peer_main.h"
#include "benchmarks/recorder.h"
#include "grpcpp/grpcpp.h"

namespace benchmarks {

struct GrpcClientOptions {
  GrpcApi api = GrpcApi::kCallback;  // of calls that are not made one by one
  bool raw = false;                  // see GrpcServerOptions
};

absl::StatusOr<std::shared_ptr<grpc::Channel>> ConnectGrpc(
    const std::string& address);

// As Peer::Run.
using GrpcRun = std::function<void(Recorder&)>;

// As Peer::Prepare, for what is run then.
absl::StatusOr<GrpcRun> PrepareGrpc(
    const std::shared_ptr<grpc::Channel>& channel,
    const GrpcClientOptions& options, const PeerWorkload& workload);

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_GRPC_CLIENT_H_
