// What the code that is generated from .proto files includes. See rpc.h for
// what programs include.
#ifndef VERBENA_RPC_GENERATED_CODE_H_
#define VERBENA_RPC_GENERATED_CODE_H_

#include <functional>
#include <memory>

#include "google/protobuf/message.h"
#include "google/protobuf/message_lite.h"
#include "rpc/async_stream.h"
#include "rpc/async_unary_call.h"
#include "rpc/channel_interface.h"
#include "rpc/client_callback.h"
#include "rpc/client_context.h"
#include "rpc/client_coroutine.h"
#include "rpc/client_stream_callback.h"
#include "rpc/completion_queue.h"
#include "rpc/coroutine.h"
#include "rpc/internal/callback_server_stream.h"
#include "rpc/internal/callback_unary_handler.h"
#include "rpc/internal/client_unary_call.h"
#include "rpc/internal/coroutine_handlers.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/rpc_service_method.h"
#include "rpc/internal/sync_stream_handlers.h"
#include "rpc/internal/sync_unary_handler.h"
#include "rpc/server_callback.h"
#include "rpc/server_context.h"
#include "rpc/server_coroutine.h"
#include "rpc/server_stream_callback.h"
#include "rpc/service.h"
#include "rpc/status.h"
#include "rpc/stub_options.h"
#include "rpc/sync_stream.h"

namespace rpc::protobuf {

using google::protobuf::Message;
using google::protobuf::MessageLite;

}  // namespace rpc::protobuf

#endif  // VERBENA_RPC_GENERATED_CODE_H_
