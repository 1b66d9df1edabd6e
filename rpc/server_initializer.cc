#include "rpc/server_initializer.h"

#include <utility>

#include "rpc/server.h"

namespace rpc {

bool ServerInitializer::RegisterService(std::shared_ptr<Service> service) {
  absl::Status status = server_.RegisterService(service.get());
  // Also where it failed: the server has some of its methods then.
  server_.plugin_services_.push_back(std::move(service));
  const bool registered = status.ok();
  status_.Update(std::move(status));
  return registered;
}

const std::vector<std::string>* ServerInitializer::GetServiceList() const {
  return &server_.service_names_;
}

bool ServerInitializer::user_chose_health_check_service() const {
  return server_.user_chose_health_check_service_;
}

void ServerInitializer::SetHealthCheckService(
    std::shared_ptr<HealthCheckServiceInterface> service) {
  server_.health_check_service_ = std::move(service);
}

}  // namespace rpc
