// All of Verbena's API, for programs:
//
//   #include "rpc/rpc.h"
//   #include "greeter.rpc.pb.h"
//
// Names, signatures and semantics are gRPC C++'s, in namespace rpc. Beyond
// gRPC: attachments (buffer.h, client_context.h, server_context.h).
//
// A program also links a transport: //rdma_transport in its target's deps.
#ifndef VERBENA_RPC_RPC_H_
#define VERBENA_RPC_RPC_H_

#include "rpc/alarm.h"
#include "rpc/async_stream.h"
#include "rpc/async_unary_call.h"
#include "rpc/auth_context.h"
#include "rpc/buffer.h"
#include "rpc/byte_buffer.h"
#include "rpc/channel.h"
#include "rpc/channel_arguments.h"
#include "rpc/channel_interface.h"
#include "rpc/client_callback.h"
#include "rpc/client_context.h"
#include "rpc/client_coroutine.h"
#include "rpc/client_interceptor.h"
#include "rpc/client_stream_callback.h"
#include "rpc/completion_queue.h"
#include "rpc/compression.h"
#include "rpc/coroutine.h"
#include "rpc/credentials.h"
#include "rpc/ext/health_check_service_server_builder_option.h"
#include "rpc/ext/proto_server_reflection_plugin.h"
#include "rpc/generic_service.h"
#include "rpc/generic_stub.h"
#include "rpc/grpc_names.h"
#include "rpc/health_check_service_interface.h"
#include "rpc/interceptor.h"
#include "rpc/logging.h"
#include "rpc/message_allocator.h"
#include "rpc/metadata.h"
#include "rpc/propagation_options.h"
#include "rpc/proto_buffer_reader.h"
#include "rpc/proto_buffer_writer.h"
#include "rpc/proto_utils.h"
#include "rpc/protobuf.h"
#include "rpc/serialization_traits.h"
#include "rpc/server.h"
#include "rpc/server_builder.h"
#include "rpc/server_builder_option.h"
#include "rpc/server_builder_plugin.h"
#include "rpc/server_callback.h"
#include "rpc/server_context.h"
#include "rpc/server_coroutine.h"
#include "rpc/server_initializer.h"
#include "rpc/server_stream_callback.h"
#include "rpc/service.h"
#include "rpc/slice.h"
#include "rpc/status.h"
#include "rpc/stub_options.h"
#include "rpc/sync_stream.h"
#include "rpc/transport.h"
#include "rpc/write_options.h"

#endif  // VERBENA_RPC_RPC_H_
