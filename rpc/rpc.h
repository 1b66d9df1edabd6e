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

#include "rpc/buffer.h"
#include "rpc/channel.h"
#include "rpc/channel_arguments.h"
#include "rpc/channel_interface.h"
#include "rpc/client_callback.h"
#include "rpc/client_context.h"
#include "rpc/credentials.h"
#include "rpc/logging.h"
#include "rpc/metadata.h"
#include "rpc/server.h"
#include "rpc/server_builder.h"
#include "rpc/server_callback.h"
#include "rpc/server_context.h"
#include "rpc/service.h"
#include "rpc/status.h"
#include "rpc/stub_options.h"
#include "rpc/sync_stream.h"
#include "rpc/transport.h"
#include "rpc/write_options.h"

#endif  // VERBENA_RPC_RPC_H_
