#include "rpc/server_builder.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "rpc/logging.h"
#include "rpc/server_initializer.h"

namespace rpc {
namespace {

// Of a server without a port, for its InProcessChannel.
constexpr char kOwnProcessAddress[] = "rdma://127.0.0.1:0";

using PluginFactory = std::unique_ptr<ServerBuilderPlugin> (*)();

// Those of all builders.
class PluginFactories {
 public:
  // Never destroyed: a static object may build a server.
  static PluginFactories& Get() {
    static auto* const factories = new PluginFactories;
    return *factories;
  }

  void Add(PluginFactory factory) {
    absl::MutexLock lock(&mutex_);
    factories_.push_back(factory);
  }
  std::vector<PluginFactory> All() {
    absl::MutexLock lock(&mutex_);
    return factories_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<PluginFactory> factories_ ABSL_GUARDED_BY(mutex_);
};

bool Contains(const std::vector<Service*>& services, const Service* service) {
  return std::find(services.begin(), services.end(), service) != services.end();
}

// The port that an address names; 0: none, or any.
int PortOf(const std::string& address) {
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port))
    return 0;
  return port;
}

// Where the process itself reaches what listens at `address`, which was fine:
// at the port that was picked, and not at a wildcard.
std::string OwnAddress(const std::string& address, int port) {
  const size_t colon = address.rfind(':');
  const size_t slashes = address.find("//");
  const size_t host_begin = slashes == std::string::npos ? 0 : slashes + 2;
  std::string host = address.substr(host_begin, colon - host_begin);
  if (host == "0.0.0.0" || host == "[::]") host = "localhost";
  return absl::StrCat(address.substr(0, host_begin), host, ":", port);
}

}  // namespace

void ServerBuilder::InternalAddPluginFactory(
    std::unique_ptr<ServerBuilderPlugin> (*create_plugin)()) {
  PluginFactories::Get().Add(create_plugin);
}

ServerBuilder& ServerBuilder::AddListeningPort(
    const std::string& address, std::shared_ptr<ServerCredentials> credentials,
    int* selected_port) {
  ports_.push_back({address, std::move(credentials), selected_port});
  if (selected_port != nullptr) *selected_port = 0;
  return *this;
}

ServerBuilder& ServerBuilder::SetOption(
    std::unique_ptr<ServerBuilderOption> option) {
  options_.push_back(std::move(option));
  return *this;
}

ServerBuilder& ServerBuilder::RegisterService(Service* service) {
  services_.push_back(service);
  return *this;
}

ServerBuilder& ServerBuilder::RegisterService(const std::string& /*host*/,
                                              Service* service) {
  hosted_services_.push_back(service);
  return *this;
}

ServerBuilder& ServerBuilder::RegisterAsyncGenericService(
    AsyncGenericService* service) {
  needs_queue_ |= TakeGenericHandler(service->handler_);
  return *this;
}

ServerBuilder& ServerBuilder::RegisterCallbackGenericService(
    CallbackGenericService* service) {
  TakeGenericHandler(service->handler_);
  return *this;
}

bool ServerBuilder::TakeGenericHandler(
    std::shared_ptr<internal::MethodHandler> handler) {
  if (generic_handler_ != nullptr) {
    Log(LogLevel::kError,
        "a server has one generic service at most: this one is left out");
    return false;
  }
  generic_handler_ = std::move(handler);
  return true;
}

std::unique_ptr<ServerCompletionQueue> ServerBuilder::AddCompletionQueue(
    bool is_frequently_polled) {
  auto queue = std::make_unique<ServerCompletionQueue>(is_frequently_polled);
  queues_.push_back(queue.get());
  return queue;
}

std::unique_ptr<Server> ServerBuilder::BuildAndStart() {
  absl::StatusOr<std::unique_ptr<Server>> server = BuildAndStartOrStatus();
  if (server.ok()) return *std::move(server);
  Log(LogLevel::kError,
      absl::StrCat("the server was not started: ", server.status().ToString()));
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Server>> ServerBuilder::BuildAndStartOrStatus() {
  ApplyOptionsAndPlugins();
  absl::StatusOr<EndpointOptions> options = ParseArguments(arguments_);
  if (!options.ok()) return options.status();
  DropRepeatedHostedServices();
  if (generic_handler_ == nullptr && NeedsGenericService()) {
    return absl::FailedPreconditionError(
        "a service leaves methods to a generic service, and there is none");
  }
  if (NeedsQueue() && queues_.empty()) {
    return absl::FailedPreconditionError(
        "an asynchronous service without a queue: call AddCompletionQueue");
  }
  absl::StatusOr<std::unique_ptr<ServerTransport>> transport = Listen(*options);
  if (!transport.ok()) return transport.status();

  std::unique_ptr<Server> server(new Server(*std::move(transport), *options));
  server->SetGenericHandler(generic_handler_);
  server->SetInterceptors(std::move(interceptor_factories_));
  for (ServerCompletionQueue* const queue : queues_) server->AddQueue(queue);
  server->own_address_ = own_address_;
  server->SetContextAllocator(std::move(context_allocator_));
  server->health_check_service_ = std::move(health_check_service_);
  server->user_chose_health_check_service_ = has_health_check_choice_;
  absl::Status status = RegisterServices(*server);
  if (status.ok()) status = server->Start();
  if (status.ok()) return server;
  for (const Port& port : ports_) {
    if (port.selected_port != nullptr) *port.selected_port = 0;
  }
  return status;
}

// Plugins may set options, too.
void ServerBuilder::ApplyOptionsAndPlugins() {
  for (const PluginFactory create : PluginFactories::Get().All()) {
    plugins_.push_back(create());
  }
  size_t option = 0;
  size_t plugin = 0;
  while (option < options_.size() || plugin < plugins_.size()) {
    if (option < options_.size()) {
      ServerBuilderOption& next = *options_[option++];
      next.UpdateArguments(&arguments_);
      next.UpdatePlugins(&plugins_);
      TakeHealthCheckService();
    } else {
      plugins_[plugin++]->UpdateServerBuilder(this);
    }
  }
  for (const auto& each : plugins_) each->UpdateChannelArguments(&arguments_);
  TakeHealthCheckService();
}

void ServerBuilder::TakeHealthCheckService() {
  const std::optional<void*> service =
      arguments_.TakePointer(kHealthCheckServiceInterfaceArg);
  if (!service.has_value()) return;
  has_health_check_choice_ = true;
  health_check_service_.reset(
      static_cast<HealthCheckServiceInterface*>(*service));
}

// One may be registered for several hosts, and without one.
void ServerBuilder::DropRepeatedHostedServices() {
  for (Service* service : std::exchange(hosted_services_, {})) {
    if (!Contains(services_, service) && !Contains(hosted_services_, service)) {
      hosted_services_.push_back(service);
    }
  }
}

template <typename Predicate>
bool ServerBuilder::AnyService(Predicate predicate) const {
  return std::any_of(services_.begin(), services_.end(), predicate) ||
         std::any_of(hosted_services_.begin(), hosted_services_.end(),
                     predicate);
}

bool ServerBuilder::NeedsQueue() const {
  return needs_queue_ || AnyService([](const Service* service) {
           return service->has_async_methods();
         });
}

bool ServerBuilder::NeedsGenericService() const {
  return AnyService(
      [](const Service* service) { return service->has_generic_methods(); });
}

absl::Status ServerBuilder::RegisterServices(Server& server) {
  for (Service* service : services_) {
    absl::Status status = server.RegisterService(service);
    if (!status.ok()) return status;
  }
  for (Service* service : hosted_services_) {
    absl::Status status = server.RegisterService(service, /*where_free=*/true);
    if (!status.ok()) return status;
  }
  ServerInitializer initializer(&server);
  for (const auto& plugin : plugins_) plugin->InitServer(&initializer);
  for (const auto& plugin : plugins_) plugin->Finish(&initializer);
  return initializer.status();
}

absl::StatusOr<std::unique_ptr<ServerTransport>> ServerBuilder::Listen(
    const EndpointOptions& options) {
  if (ports_.empty()) {
    AddListeningPort(kOwnProcessAddress, InsecureServerCredentials());
  }
  absl::StatusOr<TransportFactory*> factory =
      TransportFactory::ForAddress(ports_.front().address);
  if (!factory.ok()) return factory.status();
  absl::StatusOr<std::unique_ptr<ServerTransport>> transport =
      (*factory)->CreateServer(options.transport);
  if (!transport.ok()) return transport.status();
  std::set<std::string> listened_on;
  for (const Port& port : ports_) {
    if (port.credentials == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          port.address, ": no credentials; try InsecureServerCredentials()"));
    }
    absl::StatusOr<int> number = PortOf(port.address);
    const bool is_repeated = !listened_on.insert(port.address).second &&
                             *number != 0 && options.reuse_port;
    if (!is_repeated) number = (*transport)->AddListeningPort(port.address);
    if (!number.ok()) return number.status();
    if (port.selected_port != nullptr) *port.selected_port = *number;
    if (own_address_.empty()) own_address_ = OwnAddress(port.address, *number);
  }
  return transport;
}

}  // namespace rpc
