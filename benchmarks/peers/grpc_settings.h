// What the two sides of grpc_bench agree on: which API, and what is set
// otherwise than gRPC has it by default.
#ifndef VERBENA_BENCHMARKS_PEERS_GRPC_SETTINGS_H_
#define VERBENA_BENCHMARKS_PEERS_GRPC_SETTINGS_H_

#include "grpc/impl/codegen/grpc_types.h"

namespace benchmarks {

enum class GrpcApi { kSync, kCallback, kAsync };

struct GrpcArgument {
  const char* name;
  int value;
};

// Of the channel and of the server.
inline constexpr GrpcArgument kGrpcArguments[] = {
    // Messages may be larger than 4 MiB.
    {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1},
    // What was sent is not kept for a retry.
    {GRPC_ARG_ENABLE_RETRIES, 0},
    // Fewer filters that each call passes: no deadlines, no compression.
    {GRPC_ARG_MINIMAL_STACK, 1},
    // Tried, and no gain beyond the noise with payloads of 1 and 16 MiB: larger
    // GRPC_ARG_HTTP2_MAX_FRAME_SIZE, _STREAM_LOOKAHEAD_BYTES and
    // _WRITE_BUFFER_SIZE, without _BDP_PROBE, larger chunks of reads,
    // GRPC_ARG_OPTIMIZATION_TARGET, SO_SNDBUF up to 4 MiB. By itself gRPC
    // measures the connection and sets windows and frames after it.
};

}  // namespace benchmarks

#endif  // VERBENA_BENCHMARKS_PEERS_GRPC_SETTINGS_H_
