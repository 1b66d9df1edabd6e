#include "tests/rpc/echo_service.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace rpc::testing {
namespace {

bool TakesTime(const SayRequest& request) {
  return request.sleep_us() > 0 || request.wait_until_cancelled();
}

void EchoMetadata(ServerContextBase& context) {
  for (const auto& [key, value] : context.client_metadata()) {
    context.AddInitialMetadata(std::string(key), std::string(value));
    context.AddTrailingMetadata("trailing-" + std::string(key),
                                std::string(value));
  }
}

}  // namespace

Status HandleEcho(ServerContextBase& context, const SayRequest& request,
                  SayResponse& response) {
  if (request.sleep_us() > 0) {
    absl::SleepFor(absl::Microseconds(request.sleep_us()));
  }
  // What a user's handler that looks now and then does.
  while (request.wait_until_cancelled() && !context.IsCancelled()) {
    absl::SleepFor(absl::Microseconds(100));
  }
  response.set_text(request.text());
  response.set_payload(request.payload());
  *response.mutable_numbers() = request.numbers();
  response.set_peer(context.peer());
  if (context.raw_deadline() != absl::InfiniteFuture()) {
    response.set_deadline_unix_us(absl::ToUnixMicros(context.raw_deadline()));
  }
  response.set_attachment_bytes(
      static_cast<int64_t>(context.attachment().size()));
  if (request.echo_metadata()) EchoMetadata(context);
  if (request.echo_attachment()) context.set_attachment(context.attachment());
  if (request.response_payload_bytes() > 0) {
    response.mutable_payload()->assign(
        static_cast<size_t>(request.response_payload_bytes()), 'x');
  }
  return Status(static_cast<StatusCode>(request.status_code()),
                request.status_message(), request.status_details());
}

Status SyncEcho::Say(ServerContext* context, const SayRequest* request,
                     SayResponse* response) {
  calls.fetch_add(1);
  if (before) before(context);
  return HandleEcho(*context, *request, *response);
}

class CallbackEcho::Reactor final : public ServerUnaryReactor {
 public:
  explicit Reactor(CallbackEcho* service) : service_(*service) {}

  void OnDone() override {
    service_.dones.fetch_add(1);
    delete this;
  }
  void OnCancel() override { service_.cancels.fetch_add(1); }

 private:
  CallbackEcho& service_;
};

CallbackEcho::~CallbackEcho() {
  for (std::thread& thread : threads_) thread.join();
}

ServerUnaryReactor* CallbackEcho::Say(CallbackServerContext* context,
                                      const SayRequest* request,
                                      SayResponse* response) {
  calls.fetch_add(1);
  if (!TakesTime(*request)) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(HandleEcho(*context, *request, *response));
    return reactor;
  }
  auto* const reactor = new Reactor(this);
  std::lock_guard lock(mutex_);
  threads_.emplace_back(
      [=] { reactor->Finish(HandleEcho(*context, *request, *response)); });
  return reactor;
}

EchoServer::EchoServer(const LoopbackOptions& options, Service* service,
                       const ChannelArguments& client_arguments,
                       const std::function<void(ServerBuilder&)>& configure)
    : network_(options) {
  ServerBuilder builder;
  builder.AddListeningPort(network_.address(), InsecureServerCredentials());
  builder.RegisterService(service);
  if (configure) configure(builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
  channel_ = CreateCustomChannel(
      network_.address(), InsecureChannelCredentials(), client_arguments);
  stub_ = Echo::NewStub(channel_);
}

}  // namespace rpc::testing
