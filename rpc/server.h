// A running server; made by ServerBuilder.
//
//   std::unique_ptr<rpc::Server> server = builder.BuildAndStart();
//   server->Wait();
//
// Thread rule: every function may be called from any thread, except that
// Shutdown, Wait and the destructor must not be called from a handler.
#ifndef VERBENA_RPC_SERVER_H_
#define VERBENA_RPC_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rpc/channel.h"
#include "rpc/channel_arguments.h"
#include "rpc/client_interceptor.h"
#include "rpc/completion_queue.h"
#include "rpc/health_check_service_interface.h"
#include "rpc/internal/deadline.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/method_handler.h"
#include "rpc/internal/rpc_method.h"
#include "rpc/internal/server_core.h"
#include "rpc/internal/server_interception.h"
#include "rpc/server_context.h"
#include "rpc/service.h"
#include "rpc/transport.h"

namespace rpc {

// A server that runs.
class ServerInterface {
 public:
  virtual ~ServerInterface() = default;

  // Refuses new calls, waits for running ones to finish, and closes every
  // connection. Returns when no handler runs or will run. With a deadline
  // (absl::Time, or a time point of std::chrono's system or steady clock),
  // calls that still run then are cancelled: their clients get a status at
  // once, but handlers that are in the user's code must return (reactors:
  // Finish) before this does. Not so calls by completion queues: the thread
  // that takes their last events may be the one that shuts down, or take them
  // when the server is gone.
  void Shutdown() { ShutdownUntil(absl::InfiniteFuture()); }
  template <class T>
  void Shutdown(const T& deadline) {
    ShutdownUntil(internal::ToTime(deadline));
  }

  // Blocks until a Shutdown, by another thread, is through.
  virtual void Wait() = 0;

 private:
  virtual void ShutdownUntil(absl::Time deadline) = 0;
};

class Server final : public ServerInterface, private ServerSink {
 public:
  // Shuts down, without a deadline.
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Wait() override;

  // Null where it has none; see health_check_service_interface.h.
  HealthCheckServiceInterface* GetHealthCheckService() const {
    return health_check_service_.get();
  }

  // A channel from this process, by the first port that the server listens on:
  // over the software device, unless the server listens with another alone.
  std::shared_ptr<Channel> InProcessChannel(const ChannelArguments& arguments);

  // gRPC's experimental API: the same with interceptors (client_interceptor.h).
  class experimental_type {
   public:
    explicit experimental_type(Server* server) : server_(*server) {}
    std::shared_ptr<Channel> InProcessChannelWithInterceptors(
        const ChannelArguments& arguments,
        std::vector<
            std::unique_ptr<experimental::ClientInterceptorFactoryInterface>>
            interceptor_factories);

   private:
    Server& server_;
  };
  experimental_type experimental() { return experimental_type(this); }

  // The device in use ("soft0", "mlx5_0").
  std::string device() const { return core_->transport->device(); }

 private:
  friend class ServerBuilder;
  friend class ServerInitializer;

  Server(std::unique_ptr<ServerTransport> transport,
         const EndpointOptions& options);

  // For methods that no service has; null: they are unknown.
  void SetGenericHandler(std::shared_ptr<internal::MethodHandler> handler) {
    if (handler == nullptr) return;
    core_->generic.emplace(std::move(handler),
                           internal::RpcMethod::BIDI_STREAMING);
  }
  void SetContextAllocator(std::unique_ptr<ContextAllocator> allocator) {
    core_->context_allocator = std::move(allocator);
  }
  // Before Start, and after SetGenericHandler.
  void SetInterceptors(internal::ServerInterceptorFactories factories);
  // The queues of its asynchronous methods.
  void AddQueue(ServerCompletionQueue* queue) { queues_.push_back(queue); }
  // Whether every method IsQuick, and nothing is in front of them.
  bool IsQuick() const;
  // ALREADY_EXISTS where another service has one of its methods,
  // FAILED_PRECONDITION where it is asynchronous and another server had it.
  // `where_free`: such a method is left to the other one instead.
  absl::Status RegisterService(Service* service, bool where_free = false);
  absl::Status Start();
  void ShutdownUntil(absl::Time deadline) override;

  // Or null.
  internal::ServerMethod* FindMethod(std::string_view path);
  // For calls of a lane, so that what is learnt of the method and kept for its
  // calls is of one thread at a time, and of channels that say so of themselves
  // (method_name.h). So many of a lane at most; others' calls are without that.
  static constexpr size_t kMaxOrigins = 1024;
  internal::ServerMethod& VariantOf(internal::ServerMethod& method,
                                    std::string_view origin, uint32_t lane);

  // What the transport tells a server with interceptors.
  class InterceptingSink final : public ServerSink {
   public:
    explicit InterceptingSink(Server* server) : server_(*server) {}
    const void* OnMethod(std::string_view name, uint32_t lane) override {
      return server_.OnMethod(name, lane);
    }
    CallSink* OnCall(const Call& call, IncomingFrame& frame) override;
    void OnCutOff(CallHandle call) override { server_.OnCutOff(call); }

   private:
    Server& server_;
  };

  // ServerSink
  const void* OnMethod(std::string_view name, uint32_t lane) override;
  bool ParsesWhatArrives(const void* method) const override;
  CallSink* OnCall(const Call& call, IncomingFrame& frame) override;
  void OnCutOff(CallHandle call) override;

  struct RemoveReference {
    void operator()(internal::ServerCore* core) { core->RemoveReference(); }
  };

  std::vector<std::shared_ptr<Service>> plugin_services_;
  std::string own_address_;  // where this process reaches it
  std::shared_ptr<HealthCheckServiceInterface> health_check_service_;
  bool user_chose_health_check_service_ = false;
  std::vector<std::string> service_names_;
  InterceptingSink intercepting_sink_{this};
  std::vector<ServerCompletionQueue*> queues_;  // until Start
  // Destroyed after the executor: no thread runs a handler when the spare calls
  // go.
  const std::unique_ptr<internal::ServerCore, RemoveReference> core_;
  internal::Executor executor_;

  absl::Mutex mutex_;
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_H_
