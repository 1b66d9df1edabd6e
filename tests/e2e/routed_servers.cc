#include "tests/e2e/routed_servers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace e2e {
namespace {

// What both services do besides reading.
rpc::Status Perform(const Answer& answer, rpc::ServerContext* context) {
  absl::SleepFor(answer.nap);
  if (!answer.pushback.empty()) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms", answer.pushback);
  }
  if (answer.code == rpc::StatusCode::OK) return rpc::Status::OK;
  return rpc::Status(answer.code, "as the script says");
}

}  // namespace

void Script::Add(const Answer& answer, int times) {
  absl::MutexLock lock(&mutex_);
  answers_.insert(answers_.end(), static_cast<size_t>(times), answer);
}

Answer Script::Begin(rpc::ServerContext* context) {
  const auto found =
      context->client_metadata().find("grpc-previous-rpc-attempts");
  absl::MutexLock lock(&mutex_);
  previous_attempts_.emplace_back(
      found == context->client_metadata().end() ? "" : found->second);
  if (answers_.empty()) return {};
  Answer answer = std::move(answers_.front());
  answers_.pop_front();
  return answer;
}

int Script::calls() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(previous_attempts_.size());
}

std::vector<std::string> Script::previous_attempts() const {
  absl::MutexLock lock(&mutex_);
  return previous_attempts_;
}

class RoutedServer::EchoService final : public rpc::testing::Echo::Service {
 public:
  explicit EchoService(Script* script) : script_(*script) {}

  rpc::Status Say(rpc::ServerContext* context,
                  const rpc::testing::SayRequest* request,
                  rpc::testing::SayResponse* response) override {
    response->set_text(request->text());
    response->set_payload(request->payload());
    response->set_attachment_bytes(
        static_cast<int64_t>(context->attachment().size()));
    return Perform(script_.Begin(context), context);
  }

 private:
  Script& script_;
};

class RoutedServer::StreamsService final : public Streams::Service {
 public:
  explicit StreamsService(Script* script) : script_(*script) {}

  rpc::Status Count(rpc::ServerContext* context, const Order* order,
                    rpc::ServerWriter<Item>* writer) override {
    const Answer answer = script_.Begin(context);
    if (answer.initial_metadata) writer->SendInitialMetadata();
    for (int64_t i = 0; i < order->count(); ++i) {
      Item item;
      item.set_number(i);
      writer->Write(item);
    }
    return Perform(answer, context);
  }

  rpc::Status Sum(rpc::ServerContext* context, rpc::ServerReader<Item>* reader,
                  Total* total) override {
    const Answer answer = script_.Begin(context);
    if (answer.initial_metadata) reader->SendInitialMetadata();
    Item item;
    while (!answer.at_once && reader->Read(&item)) {
      total->set_numbers(total->numbers() + item.number());
      total->set_bytes(total->bytes() +
                       static_cast<int64_t>(item.data().size()));
    }
    return Perform(answer, context);
  }

  rpc::Status Chat(rpc::ServerContext* context,
                   rpc::ServerReaderWriter<Item, Item>* stream) override {
    const Answer answer = script_.Begin(context);
    Item item;
    while (!answer.at_once && stream->Read(&item)) stream->Write(item);
    return Perform(answer, context);
  }

 private:
  Script& script_;
};

RoutedServer::RoutedServer(int port)
    : echo_(std::make_unique<EchoService>(&script_)),
      streams_(std::make_unique<StreamsService>(&script_)) {
  rpc::ServerBuilder builder;
  builder.AddListeningPort(ServerUri(port), rpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(echo_.get());
  builder.RegisterService(streams_.get());
  builder.AddChannelArgument("verbena.device",
                             TheDeviceUnderTest().server_device);
  absl::StatusOr<std::unique_ptr<rpc::Server>> server =
      builder.BuildAndStartOrStatus();
  EXPECT_TRUE(server.ok()) << server.status();
  if (server.ok()) server_ = *std::move(server);
}

RoutedServer::~RoutedServer() { Stop(); }

void RoutedServer::Stop() {
  if (server_ != nullptr) {
    server_->Shutdown(absl::Now() + absl::Milliseconds(10));
  }
  server_.reset();
}

std::string AddressOfPorts(const std::vector<int>& ports) {
  return absl::StrCat(
      "rdma://", absl::StrJoin(ports, ",", [](std::string* out, int port) {
        absl::StrAppend(out, ServerUri(port).substr(sizeof("rdma://") - 1));
      }));
}

std::string AddressOf(const std::vector<const RoutedServer*>& servers) {
  std::vector<int> ports;
  for (const RoutedServer* server : servers) ports.push_back(server->port());
  return AddressOfPorts(ports);
}

RoutedClient::RoutedClient(const std::string& address,
                           const RoutedOptions& options) {
  rpc::ChannelArguments arguments;
  arguments.SetString("verbena.device", TheDeviceUnderTest().client_device);
  for (const auto& [name, value] : options.arguments) {
    arguments.SetInt64(name, value);
  }
  if (!options.policy.empty()) {
    arguments.SetLoadBalancingPolicyName(options.policy);
  }
  if (!options.service_config.empty()) {
    arguments.SetServiceConfigJSON(options.service_config);
  }
  channel_ = rpc::CreateCustomChannel(
      address, rpc::InsecureChannelCredentials(), arguments);
  echo_ = rpc::testing::Echo::NewStub(channel_);
  streams_ = Streams::NewStub(channel_);
}

rpc::Status RoutedClient::Say(absl::Duration timeout,
                              bool wait_for_ready) const {
  TimedContext context(timeout);
  if (wait_for_ready) context.set_wait_for_ready(true);
  rpc::testing::SayRequest request;
  request.set_text("hello");
  rpc::testing::SayResponse response;
  rpc::Status status = echo_->Say(&context, request, &response);
  if (status.ok() && response.text() != request.text()) {
    return rpc::Status(rpc::StatusCode::DATA_LOSS, response.text());
  }
  return status;
}

rpc::Status RoutedClient::SayByCallback() const {
  TimedContext context;
  const rpc::testing::SayRequest request;
  rpc::testing::SayResponse response;
  rpc::Status result;
  absl::Notification done;
  echo_->async()->Say(&context, &request, &response, [&](rpc::Status status) {
    result = std::move(status);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

rpc::Status RoutedClient::SayByQueue() const {
  rpc::CompletionQueue events;
  TimedContext context;
  rpc::testing::SayResponse response;
  rpc::Status status(rpc::StatusCode::DATA_LOSS, "it was never set");
  const auto call = echo_->AsyncSay(&context, {}, &events);
  call->Finish(&response, &status, &events);
  void* tag;
  bool ok;
  if (!events.Next(&tag, &ok)) return rpc::Status::CANCELLED;
  return status;
}

}  // namespace e2e
