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
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/channel_arguments.h"
#include "rpc/credentials.h"
#include "rpc/server.h"
#include "rpc/service.h"

namespace rpc {

class ServerBuilder {
 public:
  ServerBuilder() = default;
  ServerBuilder(const ServerBuilder&) = delete;
  ServerBuilder& operator=(const ServerBuilder&) = delete;

  // Listens on rdma://HOST:PORT or HOST:PORT (all ports of a server have one
  // scheme); port 0 picks a free one. When the server is built,
  // `*selected_port` (may be null) gets the port, or 0 where it failed.
  ServerBuilder& AddListeningPort(
      const std::string& address,
      std::shared_ptr<ServerCredentials> credentials,
      int* selected_port = nullptr);

  // `service` must outlive the server.
  ServerBuilder& RegisterService(Service* service);

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

  // See channel_arguments.h for the names.
  ServerBuilder& AddChannelArgument(const std::string& name, int value) {
    arguments_.SetInt(name, value);
    return *this;
  }
  ServerBuilder& AddChannelArgument(const std::string& name, int64_t value) {
    arguments_.SetInt64(name, value);
    return *this;
  }
  ServerBuilder& AddChannelArgument(const std::string& name,
                                    const std::string& value) {
    arguments_.SetString(name, value);
    return *this;
  }

  // Null where it fails; the log says why, at level error. Once a builder.
  std::unique_ptr<Server> BuildAndStart();

  // The same with the reason: INVALID_ARGUMENT (an address, an argument, no
  // credentials), ALREADY_EXISTS (a port in use, a method registered twice),
  // UNAVAILABLE (no device for an address), FAILED_PRECONDITION (no transport
  // linked, or nothing to listen on).
  absl::StatusOr<std::unique_ptr<Server>> BuildAndStartOrStatus();

 private:
  struct Port {
    std::string address;
    std::shared_ptr<ServerCredentials> credentials;
    int* selected_port;
  };

  absl::StatusOr<std::unique_ptr<ServerTransport>> Listen(
      const TransportOptions& options);

  ChannelArguments arguments_;
  std::vector<Port> ports_;
  std::vector<Service*> services_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_BUILDER_H_
