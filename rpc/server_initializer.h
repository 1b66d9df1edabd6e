// What a plugin (server_builder_plugin.h) may do to a server that is being
// built.
//
// Thread rule: one thread, while the server is built.
#ifndef VERBENA_RPC_SERVER_INITIALIZER_H_
#define VERBENA_RPC_SERVER_INITIALIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rpc/health_check_service_interface.h"
#include "rpc/service.h"

namespace rpc {

class Server;

class ServerInitializer {
 public:
  explicit ServerInitializer(Server* server) : server_(*server) {}
  ServerInitializer(const ServerInitializer&) = delete;
  ServerInitializer& operator=(const ServerInitializer&) = delete;

  // The server keeps `service` for as long as it lives. False where another
  // service has one of its methods: the server will not be built, and the
  // builder says why.
  bool RegisterService(std::shared_ptr<Service> service);

  // The full names ("package.Service") of the services registered so far, in
  // the order in which they were. Lives as long as the server and grows until
  // plugins are asked to Finish.
  const std::vector<std::string>* GetServiceList() const;

  // Whether the user said by an option which health checking service the server
  // has, or that it has none.
  bool user_chose_health_check_service() const;
  // What Server::GetHealthCheckService gives.
  void SetHealthCheckService(
      std::shared_ptr<HealthCheckServiceInterface> service);

  // Why a RegisterService failed, if one did.
  const absl::Status& status() const { return status_; }

 private:
  Server& server_;
  absl::Status status_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_INITIALIZER_H_
