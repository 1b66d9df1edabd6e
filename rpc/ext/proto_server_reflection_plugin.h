// Server reflection: clients that have no .proto files ask a server for its
// services and what they take. gRPC C++'s, with the same names.
//
//   int main() {
//     rpc::reflection::InitProtoReflectionServerBuilderPlugin();
//     ...  // build servers
//   }
//
// Every server that is built afterwards has the services
// grpc.reflection.v1.ServerReflection and, the same by its older name,
// grpc.reflection.v1alpha.ServerReflection. They tell what any client may know
// then: all .proto files that are linked into the program. Programs that do not
// call the function pay nothing: what it needs is not even linked into them.
//
// Thread rule: any thread.
#ifndef VERBENA_RPC_EXT_PROTO_SERVER_REFLECTION_PLUGIN_H_
#define VERBENA_RPC_EXT_PROTO_SERVER_REFLECTION_PLUGIN_H_

#include <memory>
#include <string>
#include <vector>

#include "rpc/server_builder_plugin.h"

namespace rpc::reflection {

class ReflectionService;

class ProtoServerReflectionPlugin final : public ServerBuilderPlugin {
 public:
  ProtoServerReflectionPlugin();
  ~ProtoServerReflectionPlugin() override;

  std::string name() override;
  void InitServer(ServerInitializer* initializer) override;
  void Finish(ServerInitializer* initializer) override;
  // Takes none.
  void ChangeArguments(const std::string& name, void* value) override {}
  bool has_sync_methods() const override { return true; }

 private:
  std::vector<std::shared_ptr<ReflectionService>> services_;
};

// See above. Calling it again changes nothing.
void InitProtoReflectionServerBuilderPlugin();

}  // namespace rpc::reflection

#endif  // VERBENA_RPC_EXT_PROTO_SERVER_REFLECTION_PLUGIN_H_
