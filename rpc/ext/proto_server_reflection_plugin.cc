#include "rpc/ext/proto_server_reflection_plugin.h"

#include "rpc/ext/reflection_service.h"
#include "rpc/server_builder.h"

namespace rpc::reflection {

ProtoServerReflectionPlugin::ProtoServerReflectionPlugin() {
  for (const char* path : kReflectionPaths) {
    services_.push_back(std::make_shared<ReflectionService>(path));
  }
}

ProtoServerReflectionPlugin::~ProtoServerReflectionPlugin() = default;

std::string ProtoServerReflectionPlugin::name() {
  return "proto_server_reflection";
}

void ProtoServerReflectionPlugin::InitServer(ServerInitializer* initializer) {
  for (const auto& service : services_) initializer->RegisterService(service);
}

void ProtoServerReflectionPlugin::Finish(ServerInitializer* initializer) {
  for (const auto& service : services_) {
    service->SetServiceList(initializer->GetServiceList());
  }
}

void InitProtoReflectionServerBuilderPlugin() {
  [[maybe_unused]] static const bool once = [] {
    ServerBuilder::InternalAddPluginFactory(
        []() -> std::unique_ptr<ServerBuilderPlugin> {
          return std::make_unique<ProtoServerReflectionPlugin>();
        });
    return true;
  }();
}

}  // namespace rpc::reflection
