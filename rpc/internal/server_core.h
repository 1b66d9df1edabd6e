// What all calls of a server share.
//
// Thread rule: any thread; see the members.
#ifndef VERBENA_RPC_INTERNAL_SERVER_CORE_H_
#define VERBENA_RPC_INTERNAL_SERVER_CORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/free_list.h"
#include "rpc/internal/handler_pacer.h"
#include "rpc/internal/large_spares.h"
#include "rpc/internal/message_codec.h"
#include "rpc/internal/message_functions.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/received_metadata.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/server_interception.h"
#include "rpc/server_context.h"
#include "rpc/transport.h"

namespace rpc::internal {

// Calls that go on after the transport's callback which brought them: a handler
// on another thread, a reactor that was not finished. A server waits for them
// before it goes; not for asynchronous ones, which hold its core.
class DetachedCalls {
 public:
  void Add() { count_.fetch_add(1, std::memory_order_relaxed); }
  void Remove() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) none_left_.Set();
  }
  // Once, when none is added any more.
  void WaitForAll() {
    Remove();
    none_left_.WaitUntil(absl::InfiniteFuture());
  }

 private:
  // One is the server's own, so that a zero comes only in WaitForAll.
  std::atomic<int64_t> count_{1};
  Event none_left_;
};

// A method of a server. Its handler lives as long, whatever becomes of the
// service.
struct ServerMethod {
  ServerMethod(std::shared_ptr<MethodHandler> method_handler,
               RpcMethod::RpcType method_type,
               const MethodMessages& method_messages = kAnyMessages)
      : owned_handler(std::move(method_handler)),
        handler(*owned_handler),
        type(method_type),
        messages(method_messages) {}
  // The same method, for calls of another lane, or of channels that say this of
  // themselves.
  ServerMethod(const ServerMethod& method,
               std::shared_ptr<const ReceivedMetadata> calls_origin)
      : owned_handler(method.owned_handler),
        handler(method.handler),
        type(method.type),
        messages(method.messages),
        origin(std::move(calls_origin)) {}

  const std::shared_ptr<MethodHandler> owned_handler;
  MethodHandler& handler;
  const RpcMethod::RpcType type;
  const MethodMessages messages;
  const std::shared_ptr<const ReceivedMetadata> origin;  // null: none
  HandlerPacer pacer;
  // Of ServerCall.
  FreeList spare_calls;
  LargeSpares large_calls;
};

// What all calls of a server share. It stays for asynchronous calls that the
// user has not taken the last event of, which may be after the server is gone;
// they are closed then, so that nothing is asked of the transport any more.
struct ServerCore {
  explicit ServerCore(std::unique_ptr<ServerTransport> server_transport)
      : transport(std::move(server_transport)) {}

  // The server has one, and so has each asynchronous call.
  void AddReference() { references.fetch_add(1, std::memory_order_relaxed); }
  void RemoveReference() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  std::atomic<int64_t> references{1};
  // Threads in the queues' Next may still be in it when the server is gone.
  const std::shared_ptr<ServerTransport> transport;
  EncodeLimits encode_limits;
  size_t max_metadata_bytes = 0;  // received
  size_t max_waiting_calls = 0;   // of a method, for a thread or a request
  Executor* executor = nullptr;
  std::unique_ptr<ContextAllocator> context_allocator;  // or none
  // Null: calls have no interceptors.
  std::shared_ptr<const ServerInterceptorFactories> interceptor_factories;
  std::map<std::string, ServerMethod, std::less<>> methods;  // by path
  std::optional<ServerMethod> generic;  // for methods that no service has
  // Of one lane: by the method, and what channels say of themselves.
  using MethodVariants =
      std::map<std::pair<const ServerMethod*, std::string>, ServerMethod>;
  absl::Mutex variants_mutex;
  std::map<uint32_t, MethodVariants> variants ABSL_GUARDED_BY(variants_mutex);
  DetachedCalls detached;
};

}  // namespace rpc::internal

#endif  // VERBENA_RPC_INTERNAL_SERVER_CORE_H_
