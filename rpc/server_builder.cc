#include "rpc/server_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "rpc/logging.h"

namespace rpc {

ServerBuilder& ServerBuilder::AddListeningPort(
    const std::string& address, std::shared_ptr<ServerCredentials> credentials,
    int* selected_port) {
  ports_.push_back({address, std::move(credentials), selected_port});
  if (selected_port != nullptr) *selected_port = 0;
  return *this;
}

ServerBuilder& ServerBuilder::RegisterService(Service* service) {
  services_.push_back(service);
  return *this;
}

std::unique_ptr<Server> ServerBuilder::BuildAndStart() {
  absl::StatusOr<std::unique_ptr<Server>> server = BuildAndStartOrStatus();
  if (server.ok()) return *std::move(server);
  Log(LogLevel::kError,
      absl::StrCat("the server was not started: ", server.status().ToString()));
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Server>> ServerBuilder::BuildAndStartOrStatus() {
  absl::StatusOr<EndpointOptions> options = ParseArguments(arguments_);
  if (!options.ok()) return options.status();
  absl::StatusOr<std::unique_ptr<ServerTransport>> transport =
      Listen(options->transport);
  if (!transport.ok()) return transport.status();

  std::unique_ptr<Server> server(new Server(*std::move(transport), *options));
  absl::Status status;
  for (Service* service : services_) {
    if (status.ok()) status = server->RegisterService(service);
  }
  if (status.ok()) status = server->Start();
  if (status.ok()) return server;
  for (const Port& port : ports_) {
    if (port.selected_port != nullptr) *port.selected_port = 0;
  }
  return status;
}

absl::StatusOr<std::unique_ptr<ServerTransport>> ServerBuilder::Listen(
    const TransportOptions& options) {
  if (ports_.empty()) {
    return absl::FailedPreconditionError(
        "nothing to listen on: call AddListeningPort");
  }
  absl::StatusOr<TransportFactory*> factory =
      TransportFactory::ForAddress(ports_.front().address);
  if (!factory.ok()) return factory.status();
  absl::StatusOr<std::unique_ptr<ServerTransport>> transport =
      (*factory)->CreateServer(options);
  if (!transport.ok()) return transport.status();
  for (const Port& port : ports_) {
    if (port.credentials == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          port.address, ": no credentials; try InsecureServerCredentials()"));
    }
    absl::StatusOr<int> number = (*transport)->AddListeningPort(port.address);
    if (!number.ok()) return number.status();
    if (port.selected_port != nullptr) *port.selected_port = *number;
  }
  return transport;
}

}  // namespace rpc
