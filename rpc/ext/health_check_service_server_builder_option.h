// Gives a server a health checking service of the user's own, or none.
//
//   // What server->GetHealthCheckService() will be; clients reach it by a
//   // service of the user's, registered like any other.
//   builder.SetOption(
//       std::make_unique<rpc::HealthCheckServiceServerBuilderOption>(
//           std::move(own)));
//
// Thread rule: one thread at a time.
#ifndef VERBENA_RPC_EXT_HEALTH_CHECK_SERVICE_SERVER_BUILDER_OPTION_H_
#define VERBENA_RPC_EXT_HEALTH_CHECK_SERVICE_SERVER_BUILDER_OPTION_H_

#include <memory>
#include <utility>
#include <vector>

#include "rpc/health_check_service_interface.h"
#include "rpc/server_builder_option.h"

namespace rpc {

class HealthCheckServiceServerBuilderOption final : public ServerBuilderOption {
 public:
  // The server takes over `service`. Null: it has none, not even the default.
  explicit HealthCheckServiceServerBuilderOption(
      std::unique_ptr<HealthCheckServiceInterface> service)
      : service_(std::move(service)) {}

  void UpdateArguments(ChannelArguments* arguments) override;
  void UpdatePlugins(
      std::vector<std::unique_ptr<ServerBuilderPlugin>>* plugins) override {}

 private:
  std::unique_ptr<HealthCheckServiceInterface> service_;
};

}  // namespace rpc

#endif  // VERBENA_RPC_EXT_HEALTH_CHECK_SERVICE_SERVER_BUILDER_OPTION_H_
