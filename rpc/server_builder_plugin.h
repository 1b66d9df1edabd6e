// What takes part in building every server of the process: a plugin, as gRPC
// C++ has them. Reflection is one (rpc/ext/).
//
//   class Greeting final : public rpc::ServerBuilderPlugin {
//     std::string name() override { return "greeting"; }
//     void InitServer(rpc::ServerInitializer* server) override {
//       server->RegisterService(std::make_shared<GreeterService>());
//     }
//     void Finish(rpc::ServerInitializer*) override {}
//     void ChangeArguments(const std::string&, void*) override {}
//   };
//   rpc::ServerBuilder::InternalAddPluginFactory(
//       []() -> std::unique_ptr<rpc::ServerBuilderPlugin> {
//         return std::make_unique<Greeting>();
//       });
//
// Each builder has plugins of its own, which go with it.
//
// Thread rule: called by the thread that builds.
#ifndef VERBENA_RPC_SERVER_BUILDER_PLUGIN_H_
#define VERBENA_RPC_SERVER_BUILDER_PLUGIN_H_

#include <string>

#include "rpc/channel_arguments.h"
#include "rpc/server_initializer.h"

namespace rpc {

class ServerBuilder;

class ServerBuilderPlugin {
 public:
  virtual ~ServerBuilderPlugin() = default;

  virtual std::string name() = 0;

  // ---- What building a server calls, in this order.

  // First of all, after the builder's options: may register services, add ports
  // and arguments.
  virtual void UpdateServerBuilder(ServerBuilder* builder) {}
  // Before the server is made of them.
  virtual void UpdateChannelArguments(ChannelArguments* arguments) {}
  // The server is there, with the builder's services.
  virtual void InitServer(ServerInitializer* initializer) = 0;
  // All services are there, also those of other plugins; no call has come yet.
  virtual void Finish(ServerInitializer* initializer) = 0;

  // ---- What it does not call.

  // For code that knows the plugin, to tell it something.
  virtual void ChangeArguments(const std::string& name, void* value) = 0;
  // What kinds of methods its services have. gRPC makes threads by it; here
  // nothing depends on it.
  virtual bool has_sync_methods() const { return false; }
  virtual bool has_async_methods() const { return false; }
};

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_BUILDER_PLUGIN_H_
