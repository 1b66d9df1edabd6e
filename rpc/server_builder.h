// Makes servers.
//
//   GreeterService service;
//   int port = 0;
//   rpc::ServerBuilder builder;
//   builder.AddListeningPort("rdma://0.0.0.0:0",
//                            rpc::InsecureServerCredentials(), &port);
//   builder.RegisterService(&service);
//   std::unique_ptr<rpc::Server> server = builder.BuildAndStart();
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_SERVER_BUILDER_H_
#define VERBENA_RPC_SERVER_BUILDER_H_

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/channel_arguments.h"
#include "rpc/completion_queue.h"
#include "rpc/compression.h"
#include "rpc/credentials.h"
#include "rpc/generic_service.h"
#include "rpc/resource_quota.h"
#include "rpc/server.h"
#include "rpc/server_builder_option.h"
#include "rpc/server_builder_plugin.h"
#include "rpc/server_context.h"
#include "rpc/server_interceptor.h"
#include "rpc/service.h"

namespace rpc {

class ServerBuilder {
 public:
  ServerBuilder() = default;
  virtual ~ServerBuilder() = default;
  ServerBuilder(const ServerBuilder&) = delete;
  ServerBuilder& operator=(const ServerBuilder&) = delete;

  // Listens on rdma://HOST:PORT or HOST:PORT (all ports of a server have one
  // scheme); port 0 picks a free one. A server that is given none picks one of
  // this host's own, for Server::InProcessChannel. One that is given again,
  // with the same words, is listened on once, unless grpc.so_reuseport is 0.
  // When the server is built, `*selected_port` (may be null) gets the port, or
  // 0 where it failed.
  ServerBuilder& AddListeningPort(
      const std::string& address,
      std::shared_ptr<ServerCredentials> credentials,
      int* selected_port = nullptr);

  // `service` must outlive the server; an asynchronous one serves one server.
  ServerBuilder& RegisterService(Service* service);
  // There are no virtual hosts: the service is for all, but for methods that
  // another one has, which was registered without a host, or earlier.
  ServerBuilder& RegisterService(const std::string& host, Service* service);

  // For calls of methods that no service has; one of the two, which must
  // outlive the server. A further one is left out, and logged at level error.
  // See generic_service.h.
  ServerBuilder& RegisterAsyncGenericService(AsyncGenericService* service);
  ServerBuilder& RegisterCallbackGenericService(
      CallbackGenericService* service);

  // A queue for the services of the asynchronous API, which need at least one.
  // Shut it down after the server, and take what is left in it.
  std::unique_ptr<ServerCompletionQueue> AddCompletionQueue(
      bool is_frequently_polled = true);

  // Bytes; -1: no limit, which is the default. A larger request ends with
  // RESOURCE_EXHAUSTED before a byte of it moves.
  ServerBuilder& SetMaxReceiveMessageSize(int bytes) {
    arguments_.SetMaxReceiveMessageSize(bytes);
    return *this;
  }
  ServerBuilder& SetMaxSendMessageSize(int bytes) {
    arguments_.SetMaxSendMessageSize(bytes);
    return *this;
  }

  // An old name of SetMaxReceiveMessageSize.
  ServerBuilder& SetMaxMessageSize(int bytes) {
    return SetMaxReceiveMessageSize(bytes);
  }

  // See resource_quota.h.
  ServerBuilder& SetResourceQuota(const ResourceQuota& quota) {
    arguments_.SetResourceQuota(quota);
    return *this;
  }

  // Where the contexts of the callback API's handlers come from. It goes with
  // the server.
  ServerBuilder& SetContextAllocator(
      std::unique_ptr<ContextAllocator> allocator) {
    context_allocator_ = std::move(allocator);
    return *this;
  }

  // Without effect: which threads poll, and how many, is settled as
  // docs/threading.md says.
  enum SyncServerOption { NUM_CQS, MIN_POLLERS, MAX_POLLERS, CQ_TIMEOUT_MSEC };
  ServerBuilder& SetSyncServerOption(SyncServerOption /*option*/,
                                     int /*value*/) {
    return *this;
  }

  // Without effect; see compression.h.
  ServerBuilder& SetDefaultCompressionAlgorithm(
      CompressionAlgorithm algorithm) {
    arguments_.SetCompressionAlgorithm(algorithm);
    return *this;
  }
  ServerBuilder& SetDefaultCompressionLevel(CompressionLevel level) {
    arguments_.SetInt("grpc.default_compression_level", level);
    return *this;
  }
  ServerBuilder& SetCompressionAlgorithmSupportStatus(
      CompressionAlgorithm algorithm, bool enabled) {
    return *this;
  }

  // Options are applied in the order in which they were set.
  ServerBuilder& SetOption(std::unique_ptr<ServerBuilderOption> option);

  // A number, a string or a `void*`. See channel_arguments.h for the names.
  template <class T>
  ServerBuilder& AddChannelArgument(const std::string& name, const T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      return SetOption(
          MakeChannelArgumentOption(name, static_cast<int64_t>(value)));
    } else {
      return SetOption(MakeChannelArgumentOption(name, value));
    }
  }

  // gRPC's experimental API.
  class experimental_type {
   public:
    explicit experimental_type(ServerBuilder* builder) : builder_(*builder) {}
    // Factories of interceptors, which see every call of the server; see
    // server_interceptor.h. In place of those that were set before.
    void SetInterceptorCreators(
        std::vector<
            std::unique_ptr<experimental::ServerInterceptorFactoryInterface>>
            interceptor_creators) {
      builder_.interceptor_factories_ = std::move(interceptor_creators);
    }

   private:
    ServerBuilder& builder_;
  };
  experimental_type experimental() { return experimental_type(this); }

  // Null where it fails; the log says why, at level error. Once a builder.
  virtual std::unique_ptr<Server> BuildAndStart();

  // The same with the reason: INVALID_ARGUMENT (an address, an argument, no
  // credentials), ALREADY_EXISTS (a port in use, a method registered twice),
  // UNAVAILABLE (no device for an address), FAILED_PRECONDITION (no transport
  // linked, no completion queue or no generic service for a service that needs
  // one, or an asynchronous service that another server had).
  absl::StatusOr<std::unique_ptr<Server>> BuildAndStartOrStatus();

  // From now on every builder of the process asks `create_plugin` for a plugin
  // when it builds. Any thread; it cannot be undone.
  static void InternalAddPluginFactory(
      std::unique_ptr<ServerBuilderPlugin> (*create_plugin)());

 private:
  struct Port {
    std::string address;
    std::shared_ptr<ServerCredentials> credentials;
    int* selected_port;
  };

  // False where there is one already.
  bool TakeGenericHandler(std::shared_ptr<internal::MethodHandler> handler);
  // Asks options and plugins what the server is to be.
  void ApplyOptionsAndPlugins();
  // Takes over what the arguments have, if they do.
  void TakeHealthCheckService();
  absl::StatusOr<std::unique_ptr<ServerTransport>> Listen(
      const EndpointOptions& options);
  void DropRepeatedHostedServices();
  template <typename Predicate>
  bool AnyService(Predicate predicate) const;
  bool NeedsQueue() const;
  bool NeedsGenericService() const;
  // The builder's own, and those of plugins.
  absl::Status RegisterServices(Server& server);

  ChannelArguments arguments_;
  std::vector<Port> ports_;
  std::vector<Service*> services_;
  std::vector<Service*> hosted_services_;  // none of the above
  std::shared_ptr<internal::MethodHandler> generic_handler_;
  internal::ServerInterceptorFactories interceptor_factories_;
  std::string own_address_;
  std::vector<ServerCompletionQueue*> queues_;  // the user's
  bool needs_queue_ = false;
  std::vector<std::unique_ptr<ServerBuilderOption>> options_;
  std::vector<std::unique_ptr<ServerBuilderPlugin>> plugins_;
  bool has_health_check_choice_ = false;
  std::unique_ptr<HealthCheckServiceInterface> health_check_service_;
  std::unique_ptr<ContextAllocator> context_allocator_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_BUILDER_H_
