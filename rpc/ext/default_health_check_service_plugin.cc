// EnableDefaultHealthCheckService: a plugin that gives servers the default
// health checking service. Programs that never call it do not link it.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "rpc/ext/default_health_check_service.h"
#include "rpc/health_check_service_interface.h"
#include "rpc/server_builder.h"
#include "rpc/server_builder_plugin.h"
#include "rpc/server_initializer.h"

namespace rpc {
namespace {

constexpr char kServiceName[] = "grpc.health.v1.Health";

constinit std::atomic<bool> enabled = false;

class DefaultHealthCheckPlugin final : public ServerBuilderPlugin {
 public:
  std::string name() override { return "default_health_check_service"; }
  void InitServer(ServerInitializer* initializer) override {
    if (!DefaultHealthCheckServiceEnabled() ||
        initializer->user_chose_health_check_service()) {
      return;
    }
    const auto service = std::make_shared<DefaultHealthCheckService>();
    initializer->SetHealthCheckService(service);
    const std::vector<std::string>& names = *initializer->GetServiceList();
    const bool user_has_it =
        std::find(names.begin(), names.end(), kServiceName) != names.end();
    if (!user_has_it) initializer->RegisterService(service);
  }
  void Finish(ServerInitializer* initializer) override {}
  // Takes none.
  void ChangeArguments(const std::string& name, void* value) override {}
};

}  // namespace

void EnableDefaultHealthCheckService(bool enable) {
  [[maybe_unused]] static const bool once = [] {
    ServerBuilder::InternalAddPluginFactory(
        []() -> std::unique_ptr<ServerBuilderPlugin> {
          return std::make_unique<DefaultHealthCheckPlugin>();
        });
    return true;
  }();
  enabled = enable;
}

bool DefaultHealthCheckServiceEnabled() { return enabled; }

}  // namespace rpc
