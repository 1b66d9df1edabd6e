// gRPC's names of the channel arguments that are without effect here, where
// there is no HTTP/2, no TCP and no compression. Programs that set them need no
// change; a channel or a server that gets one says so, at level info.
//
//   builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
//
// Those with an effect are in grpc_names.h, which includes this.
#ifndef VERBENA_RPC_GRPC_ARGUMENT_NAMES_H_
#define VERBENA_RPC_GRPC_ARGUMENT_NAMES_H_

#ifndef GRPC_ARG_MAX_CONCURRENT_STREAMS

// HTTP/2.
#define GRPC_ARG_HTTP2_BDP_PROBE "grpc.http2.bdp_probe"
#define GRPC_ARG_HTTP2_ENABLE_TRUE_BINARY "grpc.http2.true_binary"
#define GRPC_ARG_HTTP2_HPACK_TABLE_SIZE_DECODER \
  "grpc.http2.hpack_table_size.decoder"
#define GRPC_ARG_HTTP2_HPACK_TABLE_SIZE_ENCODER \
  "grpc.http2.hpack_table_size.encoder"
#define GRPC_ARG_HTTP2_INITIAL_SEQUENCE_NUMBER \
  "grpc.http2.initial_sequence_number"
#define GRPC_ARG_HTTP2_MAX_FRAME_SIZE "grpc.http2.max_frame_size"
#define GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA \
  "grpc.http2.max_pings_without_data"
#define GRPC_ARG_HTTP2_MAX_PING_STRIKES "grpc.http2.max_ping_strikes"
#define GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS \
  "grpc.http2.min_ping_interval_without_data_ms"
#define GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS \
  "grpc.http2.min_time_between_pings_ms"
#define GRPC_ARG_HTTP2_SCHEME "grpc.http2_scheme"
#define GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES "grpc.http2.lookahead_bytes"
#define GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE "grpc.http2.write_buffer_size"

// TCP, and how names become addresses.
#define GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS "grpc.dns_ares_query_timeout"
#define GRPC_ARG_DNS_ENABLE_SRV_QUERIES "grpc.dns_enable_srv_queries"
#define GRPC_ARG_ENABLE_HTTP_PROXY "grpc.enable_http_proxy"
#define GRPC_ARG_EXPAND_WILDCARD_ADDRS "grpc.expand_wildcard_addrs"
#define GRPC_ARG_HTTP_PROXY "grpc.http_proxy"
#define GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS "grpc.server_handshake_timeout_ms"
#define GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE \
  "grpc.experimental.tcp_max_read_chunk_size"
#define GRPC_ARG_TCP_MIN_READ_CHUNK_SIZE \
  "grpc.experimental.tcp_min_read_chunk_size"
#define GRPC_ARG_TCP_READ_CHUNK_SIZE "grpc.experimental.tcp_read_chunk_size"
#define GRPC_ARG_TCP_TX_ZEROCOPY_ENABLED \
  "grpc.experimental.tcp_tx_zerocopy_enabled"
#define GRPC_ARG_TCP_TX_ZEROCOPY_MAX_SIMULT_SENDS \
  "grpc.experimental.tcp_tx_zerocopy_max_simultaneous_sends"
#define GRPC_ARG_TCP_TX_ZEROCOPY_SEND_BYTES_THRESHOLD \
  "grpc.experimental.tcp_tx_zerocopy_send_bytes_threshold"

// Connections and streams.
#define GRPC_ARG_MAX_CONCURRENT_STREAMS "grpc.max_concurrent_streams"

// Compression.
#define GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION "grpc.per_message_compression"
#define GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION \
  "grpc.per_message_decompression"
#define GRPC_COMPRESSION_CHANNEL_DEFAULT_ALGORITHM \
  "grpc.default_compression_algorithm"
#define GRPC_COMPRESSION_CHANNEL_DEFAULT_LEVEL "grpc.default_compression_level"
#define GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET \
  "grpc.compression_enabled_algorithms_bitset"

// Tracing, statistics, and what a client calls itself.
#define GRPC_ARG_DEFAULT_AUTHORITY "grpc.default_authority"
#define GRPC_ARG_DISABLE_CLIENT_AUTHORITY_FILTER \
  "grpc.disable_client_authority_filter"
#define GRPC_ARG_ENABLE_CENSUS "grpc.census"
#define GRPC_ARG_ENABLE_CHANNELZ "grpc.enable_channelz"
#define GRPC_ARG_ENABLE_DEADLINE_CHECKS "grpc.enable_deadline_checking"
#define GRPC_ARG_ENABLE_LOAD_REPORTING "grpc.loadreporting"
#define GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE \
  "grpc.max_channel_trace_event_memory_per_node"
#define GRPC_ARG_MINIMAL_STACK "grpc.minimal_stack"
#define GRPC_ARG_OPTIMIZATION_TARGET "grpc.optimization_target"
#define GRPC_ARG_PRIMARY_USER_AGENT_STRING "grpc.primary_user_agent"
#define GRPC_ARG_SECONDARY_USER_AGENT_STRING "grpc.secondary_user_agent"
#define GRPC_ARG_SURFACE_USER_AGENT "grpc.surface_user_agent"

#endif

#endif  // VERBENA_RPC_GRPC_ARGUMENT_NAMES_H_
