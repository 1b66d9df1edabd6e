// Names without a namespace that gRPC C++ programs take from gRPC's C headers,
// so that they need no change: the connectivity states, the words for
// compression, what calls propagate, the channel arguments, and GPR_ASSERT.
//
// gRPC's C headers, <grpc/grpc.h> and the like, may be included too, before
// this or after: the types and constants that a Channel takes and gives are
// Verbena's all the same, and so is GPR_ASSERT where theirs come first, as
// gRPC's needs its library. gRPC's C++ headers have to come first; then its
// names stay gRPC's.
#ifndef VERBENA_RPC_GRPC_NAMES_H_
#define VERBENA_RPC_GRPC_NAMES_H_

#include "absl/base/optimization.h"
#include "rpc/compression.h"
#include "rpc/grpc_argument_names.h"
#include "rpc/transport.h"

namespace rpc::internal {

// Says so, and ends the process.
[[noreturn]] void AssertionFailed(const char* condition, const char* file,
                                  int line);

}  // namespace rpc::internal

#undef GPR_ASSERT
#define GPR_ASSERT(condition)   \
  (ABSL_PREDICT_TRUE(condition) \
       ? static_cast<void>(0)   \
       : ::rpc::internal::AssertionFailed(#condition, __FILE__, __LINE__))

#ifndef GRPCPP_IMPL_CODEGEN_CONFIG_H
#if __has_include(<grpc/impl/codegen/connectivity_state.h>)
// They have enumerations of these names. Read now, they are not read again, and
// from here on the names mean the ones below.
#include <grpc/impl/codegen/compression_types.h>
#include <grpc/impl/codegen/connectivity_state.h>
#define grpc_connectivity_state verbena_grpc_connectivity_state
#define GRPC_CHANNEL_IDLE verbena_GRPC_CHANNEL_IDLE
#define GRPC_CHANNEL_CONNECTING verbena_GRPC_CHANNEL_CONNECTING
#define GRPC_CHANNEL_READY verbena_GRPC_CHANNEL_READY
#define GRPC_CHANNEL_TRANSIENT_FAILURE verbena_GRPC_CHANNEL_TRANSIENT_FAILURE
#define GRPC_CHANNEL_SHUTDOWN verbena_GRPC_CHANNEL_SHUTDOWN
#define grpc_compression_algorithm verbena_grpc_compression_algorithm
#define grpc_compression_level verbena_grpc_compression_level
#define GRPC_COMPRESS_NONE verbena_GRPC_COMPRESS_NONE
#define GRPC_COMPRESS_DEFLATE verbena_GRPC_COMPRESS_DEFLATE
#define GRPC_COMPRESS_GZIP verbena_GRPC_COMPRESS_GZIP
#define GRPC_COMPRESS_ALGORITHMS_COUNT verbena_GRPC_COMPRESS_ALGORITHMS_COUNT
#define GRPC_COMPRESS_LEVEL_NONE verbena_GRPC_COMPRESS_LEVEL_NONE
#define GRPC_COMPRESS_LEVEL_LOW verbena_GRPC_COMPRESS_LEVEL_LOW
#define GRPC_COMPRESS_LEVEL_MED verbena_GRPC_COMPRESS_LEVEL_MED
#define GRPC_COMPRESS_LEVEL_HIGH verbena_GRPC_COMPRESS_LEVEL_HIGH
#define GRPC_COMPRESS_LEVEL_COUNT verbena_GRPC_COMPRESS_LEVEL_COUNT
#endif

using grpc_connectivity_state = ::rpc::ConnectivityState;
inline constexpr grpc_connectivity_state GRPC_CHANNEL_IDLE =
    ::rpc::ConnectivityState::kIdle;
inline constexpr grpc_connectivity_state GRPC_CHANNEL_CONNECTING =
    ::rpc::ConnectivityState::kConnecting;
inline constexpr grpc_connectivity_state GRPC_CHANNEL_READY =
    ::rpc::ConnectivityState::kReady;
inline constexpr grpc_connectivity_state GRPC_CHANNEL_TRANSIENT_FAILURE =
    ::rpc::ConnectivityState::kTransientFailure;
inline constexpr grpc_connectivity_state GRPC_CHANNEL_SHUTDOWN =
    ::rpc::ConnectivityState::kShutdown;

using grpc_compression_algorithm = ::rpc::CompressionAlgorithm;
using grpc_compression_level = ::rpc::CompressionLevel;
inline constexpr grpc_compression_algorithm GRPC_COMPRESS_NONE =
    ::rpc::COMPRESS_NONE;
inline constexpr grpc_compression_algorithm GRPC_COMPRESS_DEFLATE =
    ::rpc::COMPRESS_DEFLATE;
inline constexpr grpc_compression_algorithm GRPC_COMPRESS_GZIP =
    ::rpc::COMPRESS_GZIP;
inline constexpr grpc_compression_algorithm GRPC_COMPRESS_ALGORITHMS_COUNT =
    ::rpc::COMPRESS_ALGORITHMS_COUNT;
inline constexpr grpc_compression_level GRPC_COMPRESS_LEVEL_NONE =
    ::rpc::COMPRESS_LEVEL_NONE;
inline constexpr grpc_compression_level GRPC_COMPRESS_LEVEL_LOW =
    ::rpc::COMPRESS_LEVEL_LOW;
inline constexpr grpc_compression_level GRPC_COMPRESS_LEVEL_MED =
    ::rpc::COMPRESS_LEVEL_MED;
inline constexpr grpc_compression_level GRPC_COMPRESS_LEVEL_HIGH =
    ::rpc::COMPRESS_LEVEL_HIGH;
inline constexpr grpc_compression_level GRPC_COMPRESS_LEVEL_COUNT =
    ::rpc::COMPRESS_LEVEL_COUNT;
#endif

#ifndef GRPC_PROPAGATE_DEADLINE
// Bits of PropagationOptions::c_bitmask.
#define GRPC_PROPAGATE_DEADLINE 1u
#define GRPC_PROPAGATE_CENSUS_STATS_CONTEXT 2u
#define GRPC_PROPAGATE_CENSUS_TRACING_CONTEXT 4u
#define GRPC_PROPAGATE_CANCELLATION 8u
#define GRPC_PROPAGATE_DEFAULTS 0xffffu
#endif

#ifndef GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH
// See channel_arguments.h.
#define GRPC_ARG_ALLOW_REUSEPORT "grpc.so_reuseport"
#define GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS "grpc.client_idle_timeout_ms"
#define GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS \
  "grpc.dns_min_time_between_resolutions_ms"
#define GRPC_ARG_ENABLE_RETRIES "grpc.enable_retries"
#define GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS \
  "grpc.initial_reconnect_backoff_ms"
#define GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS \
  "grpc.keepalive_permit_without_calls"
#define GRPC_ARG_KEEPALIVE_TIME_MS "grpc.keepalive_time_ms"
#define GRPC_ARG_KEEPALIVE_TIMEOUT_MS "grpc.keepalive_timeout_ms"
#define GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS "grpc.max_connection_age_grace_ms"
#define GRPC_ARG_MAX_CONNECTION_AGE_MS "grpc.max_connection_age_ms"
#define GRPC_ARG_MAX_CONNECTION_IDLE_MS "grpc.max_connection_idle_ms"
#define GRPC_ARG_LB_POLICY_NAME "grpc.lb_policy_name"
#define GRPC_ARG_MAX_MESSAGE_LENGTH GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH
#define GRPC_ARG_MAX_METADATA_SIZE "grpc.max_metadata_size"
#define GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH "grpc.max_receive_message_length"
#define GRPC_ARG_MAX_RECONNECT_BACKOFF_MS "grpc.max_reconnect_backoff_ms"
#define GRPC_ARG_MAX_SEND_MESSAGE_LENGTH "grpc.max_send_message_length"
#define GRPC_ARG_MIN_RECONNECT_BACKOFF_MS "grpc.min_reconnect_backoff_ms"
#define GRPC_ARG_PER_RPC_RETRY_BUFFER_SIZE "grpc.per_rpc_retry_buffer_size"
#define GRPC_ARG_SERVICE_CONFIG "grpc.service_config"
#define GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL "grpc.use_local_subchannel_pool"
// Bytes. gRPC's defaults; Verbena's are no limit for either.
#define GRPC_DEFAULT_MAX_RECV_MESSAGE_LENGTH (4 * 1024 * 1024)
#define GRPC_DEFAULT_MAX_SEND_MESSAGE_LENGTH (-1)
#endif

#endif  // VERBENA_RPC_GRPC_NAMES_H_
