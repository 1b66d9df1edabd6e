#include "rpc/channel.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/internal/callback_scope.h"
#include "rpc/internal/executor.h"
#include "rpc/internal/method_name.h"
#include "rpc/logging.h"
#include "rpc/routing/address_list.h"
#include "rpc/routing/routing_transport.h"

namespace rpc {
namespace {

absl::StatusOr<std::unique_ptr<ClientTransport>> CreateTransport(
    const std::string& address, const EndpointOptions& options) {
  if (routing::IsNeeded(address, options.routing)) {
    return routing::CreateRoutingTransport(address, options.transport,
                                           options.routing);
  }
  const std::string only = routing::SplitAddresses(address).front();
  absl::StatusOr<TransportFactory*> factory =
      TransportFactory::ForAddress(only);
  if (!factory.ok()) return factory.status();
  return (*factory)->CreateClient(only, options.transport);
}

// "host:port" of "rdma://host:port", and the same of several.
std::string_view AuthorityOf(std::string_view address) {
  const size_t scheme = address.find("://");
  if (scheme != std::string_view::npos) address.remove_prefix(scheme + 3);
  if (address.substr(0, 1) == "/") address.remove_prefix(1);
  return address;
}

std::string OriginOf(const std::string& address,
                     const EndpointOptions& options) {
  const std::string_view authority = options.authority.empty()
                                         ? AuthorityOf(address)
                                         : std::string_view(options.authority);
  std::string agent;
  for (const std::string& part :
       {options.user_agent_prefix, std::string("verbena-c++"),
        options.user_agent_suffix}) {
    if (!part.empty()) absl::StrAppend(&agent, agent.empty() ? "" : " ", part);
  }
  const bool says_who =
      !options.user_agent_prefix.empty() || !options.user_agent_suffix.empty();
  return internal::EncodeOrigin(authority, says_who ? agent : "");
}

// Ends a channel on a thread that no transport's frames are below of.
class Destruction final : public internal::Executor::Task {
 public:
  explicit Destruction(std::unique_ptr<Channel> channel)
      : channel_(std::move(channel)) {}
  void RunTask() override { delete this; }

 private:
  ~Destruction() = default;
  const std::unique_ptr<Channel> channel_;
};

}  // namespace

Channel::Channel(std::unique_ptr<ClientTransport> transport,
                 const EndpointOptions& options, const std::string& address)
    : transport_(std::move(transport)),
      routing_(options.routing),
      origin_(OriginOf(address, options)),
      target_{.transport = transport_.get(),
              .encode_limits = internal::EncodeLimits(
                  transport_->limits(), options.max_send_message_bytes),
              .max_metadata_bytes = options.max_metadata_bytes,
              .channel = this} {}

Channel::Channel(Status error) : target_{.error = std::move(error)} {}

void Channel::Destroy(Channel* channel) {
  if (internal::CallbackScope::current() == nullptr) {
    delete channel;
    return;
  }
  auto* const destruction = new Destruction(std::unique_ptr<Channel>(channel));
  if (!internal::Executor::ForCallbacks().Post(destruction)) {
    // Kept for good: better a leak than a transport that ends under itself.
    Log(LogLevel::kError, "no thread can be made to close a channel");
  }
}

// Calls go to the interceptors where there seems to be no transport.
void Channel::SetInterceptors(internal::ClientInterceptorFactories factories) {
  if (factories.empty() &&
      internal::GlobalClientInterceptorFactory() == nullptr) {
    return;
  }
  interceptor_factories_ = std::move(factories);
  interceptors_ = {.factories = &interceptor_factories_,
                   .channel = this,
                   .transport = transport_.get()};
  target_.interceptors = &interceptors_;
  target_.transport = nullptr;
}

ConnectivityState Channel::GetState(bool try_to_connect) {
  if (transport_ == nullptr) return ConnectivityState::kTransientFailure;
  return transport_->GetState(try_to_connect);
}

bool Channel::WaitForStateChangeUntil(ConnectivityState last_observed,
                                      absl::Time deadline) {
  if (transport_ == nullptr) {
    return last_observed != ConnectivityState::kTransientFailure;
  }
  return transport_->WaitForStateChange(last_observed, deadline);
}

absl::StatusOr<Buffer> Channel::AllocateBuffer(size_t bytes) {
  if (transport_ == nullptr) return target_.error.ToAbslStatus();
  return transport_->AllocateBuffer(bytes);
}

std::string Channel::GetLoadBalancingPolicyName() const {
  return routing::PolicyName(routing_);
}

std::string Channel::device() const {
  return transport_ == nullptr ? std::string() : transport_->device();
}

uint32_t Channel::RegisterMethod(const char* path) {
  const uint32_t number =
      transport_ == nullptr
          ? 0
          : transport_->RegisterMethod(internal::MethodName(path, origin_));
  absl::MutexLock lock(&registrations_mutex_);
  ++registration_attempts_;
  registered_methods_.insert(number);
  return number;
}

std::shared_ptr<Channel> CreateChannel(
    const std::string& address,
    const std::shared_ptr<ChannelCredentials>& credentials) {
  return CreateCustomChannel(address, credentials, ChannelArguments());
}

std::shared_ptr<Channel> CreateCustomChannel(
    const std::string& address,
    const std::shared_ptr<ChannelCredentials>& credentials,
    const ChannelArguments& arguments) {
  return experimental::CreateCustomChannelWithInterceptors(address, credentials,
                                                           arguments, {});
}

void experimental::ChannelResetConnectionBackoff(Channel* channel) {
  if (channel->transport_ != nullptr) channel->transport_->ResetBackoff();
}

std::shared_ptr<Channel> experimental::CreateCustomChannelWithInterceptors(
    const std::string& address,
    const std::shared_ptr<ChannelCredentials>& credentials,
    const ChannelArguments& arguments,
    internal::ClientInterceptorFactories interceptor_factories) {
  const auto make = [&](Channel* channel) {
    channel->SetInterceptors(std::move(interceptor_factories));
    return std::shared_ptr<Channel>(channel, &Channel::Destroy);
  };
  const auto broken = [&](const absl::Status& error) {
    return make(new Channel(
        Status(static_cast<StatusCode>(error.code()),
               absl::StrCat("channel to '", address, "': ", error.message()))));
  };
  if (credentials == nullptr) {
    return broken(absl::InvalidArgumentError(
        "no credentials; try InsecureChannelCredentials()"));
  }
  absl::StatusOr<EndpointOptions> options = ParseArguments(arguments);
  if (!options.ok()) return broken(options.status());
  absl::StatusOr<std::unique_ptr<ClientTransport>> transport =
      CreateTransport(address, *options);
  if (!transport.ok()) return broken(transport.status());
  return make(new Channel(*std::move(transport), *options, address));
}

}  // namespace rpc
