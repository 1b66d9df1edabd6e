#include "rpc/server.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "rpc/internal/child_calls.h"
#include "rpc/internal/method_name.h"
#include "rpc/internal/server_call.h"
#include "rpc/internal/unknown_method.h"

namespace rpc {
namespace {

// "package.Service" of "/package.Service/Method".
std::string_view ServiceOfPath(std::string_view path) {
  path = path.substr(0, path.rfind('/'));
  return path.substr(path.find('/') + 1);
}

}  // namespace

Server::Server(std::unique_ptr<ServerTransport> transport,
               const EndpointOptions& options)
    : core_(new internal::ServerCore(std::move(transport))),
      executor_({.max_threads = options.handler_threads,
                 .max_queued = options.handler_queue}) {
  core_->encode_limits = internal::EncodeLimits(core_->transport->limits(),
                                                options.max_send_message_bytes);
  core_->max_metadata_bytes = options.max_metadata_bytes;
  core_->max_waiting_calls = options.handler_queue;
  core_->executor = &executor_;
}

Server::~Server() { Shutdown(); }

absl::Status Server::RegisterService(Service* service, bool where_free) {
  // Its calls and requests meet in the service, and end with the server.
  if (std::exchange(service->was_registered_, true) &&
      service->has_async_methods()) {
    return absl::FailedPreconditionError(
        "an asynchronous service serves one server, and this one did already: "
        "make another one");
  }
  for (const auto& method : service->methods_) {
    if (method->handler() == nullptr) continue;  // a generic service's
    const bool inserted =
        core_->methods
            .emplace(std::piecewise_construct,
                     std::forward_as_tuple(method->name()),
                     std::forward_as_tuple(method->shared_handler(),
                                           method->method_type(),
                                           method->messages()))
            .second;
    if (!inserted && !where_free) {
      return absl::AlreadyExistsError(
          absl::StrCat("method ", method->name(), " is registered twice"));
    }
  }
  // One without methods has no name, as in gRPC.
  if (!service->methods_.empty()) {
    service_names_.emplace_back(
        ServiceOfPath(service->methods_.front()->name()));
  }
  return absl::OkStatus();
}

void Server::SetInterceptors(internal::ServerInterceptorFactories factories) {
  if (factories.empty()) return;
  core_->interceptor_factories =
      std::make_shared<internal::ServerInterceptorFactories>(
          std::move(factories));
  // Interceptors see calls of unknown methods, too.
  if (!core_->generic.has_value()) SetGenericHandler(internal::UnknownMethod());
}

bool Server::IsQuick() const {
  const internal::ServerCore& core = *core_;
  return core.interceptor_factories == nullptr &&
         (!core.generic.has_value() || core.generic->handler.IsQuick()) &&
         std::all_of(core.methods.begin(), core.methods.end(),
                     [](const auto& method) {
                       return method.second.handler.IsQuick();
                     });
}

absl::Status Server::Start() {
  ServerSink* sink = this;
  if (core_->interceptor_factories != nullptr) sink = &intercepting_sink_;
  absl::Status status = core_->transport->Start(sink);
  if (status.ok() && IsQuick()) {
    for (ServerCompletionQueue* const queue : queues_) {
      queue->SetServerTransport(core_->transport);
    }
  }
  queues_.clear();
  return status;
}

void Server::ShutdownUntil(absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex_);
    if (shutting_down_) {
      mutex_.Await(absl::Condition(&shut_down_));
      return;
    }
    shutting_down_ = true;
  }
  for (auto& [path, method] : core_->methods) method.handler.Shutdown();
  if (core_->generic.has_value()) core_->generic->handler.Shutdown();
  core_->transport->Shutdown(deadline);
  // No callback runs any more. Handlers on other threads may.
  core_->detached.WaitForAll();
  absl::MutexLock lock(&mutex_);
  shut_down_ = true;
}

void Server::Wait() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&shut_down_));
}

std::shared_ptr<Channel> Server::InProcessChannel(
    const ChannelArguments& arguments) {
  return CreateCustomChannel(own_address_, InsecureChannelCredentials(),
                             arguments.WithAuthority("inproc"));
}

std::shared_ptr<Channel>
Server::experimental_type::InProcessChannelWithInterceptors(
    const ChannelArguments& arguments,
    std::vector<
        std::unique_ptr<experimental::ClientInterceptorFactoryInterface>>
        interceptor_factories) {
  return experimental::CreateCustomChannelWithInterceptors(
      server_.own_address_, InsecureChannelCredentials(),
      arguments.WithAuthority("inproc"), std::move(interceptor_factories));
}

internal::ServerMethod* Server::FindMethod(std::string_view path) {
  const auto found = core_->methods.find(path);
  if (found != core_->methods.end()) return &found->second;
  return core_->generic.has_value() ? &*core_->generic : nullptr;
}

const void* Server::OnMethod(std::string_view name, uint32_t lane) {
  internal::ServerMethod* const method =
      FindMethod(internal::PathOfMethodName(name));
  if (method == nullptr) return nullptr;
  return &VariantOf(*method, internal::OriginOfMethodName(name), lane);
}

internal::ServerMethod& Server::VariantOf(internal::ServerMethod& method,
                                          std::string_view origin,
                                          uint32_t lane) {
  internal::ServerCore& core = *core_;
  absl::MutexLock lock(&core.variants_mutex);
  auto& variants = core.variants[lane];
  const auto found = variants.find({&method, std::string(origin)});
  if (found != variants.end()) return found->second;
  std::shared_ptr<const internal::ReceivedMetadata> decoded;
  if (!origin.empty() && variants.size() < kMaxOrigins) {
    decoded = internal::DecodeOrigin(origin);
  }
  if (decoded == nullptr) {
    if (lane == 0) return method;
    origin = {};
  }
  // There may be the one without an origin.
  return variants
      .try_emplace({&method, std::string(origin)}, method, std::move(decoded))
      .first->second;
}

CallSink* Server::InterceptingSink::OnCall(const Call& call,
                                           IncomingFrame& frame) {
  auto* const method =
      static_cast<internal::ServerMethod*>(const_cast<void*>(call.method));
  return internal::ServerCall::ServeIntercepted(server_.core_.get(), method,
                                                call, frame);
}

bool Server::ParsesWhatArrives(const void* method) const {
  return method != nullptr && static_cast<const internal::ServerMethod*>(method)
                                  ->handler.ParsesWhatArrives();
}

CallSink* Server::OnCall(const Call& call, IncomingFrame& frame) {
  if (ABSL_PREDICT_FALSE(call.method == nullptr)) return nullptr;
  auto* const method =
      static_cast<internal::ServerMethod*>(const_cast<void*>(call.method));
  return internal::ServerCall::Serve(core_.get(), method, call, frame);
}

void Server::OnCutOff(CallHandle call) {
  internal::ChildCalls::Get().Cancel({core_->transport.get(), call});
}

}  // namespace rpc
