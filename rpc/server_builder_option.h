// What a ServerBuilder is given to change the server's arguments and plugins,
// as gRPC C++ has it.
//
//   class Frugal final : public rpc::ServerBuilderOption {
//     void UpdateArguments(rpc::ChannelArguments* arguments) override {
//       arguments->SetInt("verbena.handler_threads", 2);
//     }
//     void UpdatePlugins(
//         std::vector<std::unique_ptr<rpc::ServerBuilderPlugin>>*) override {}
//   };
//   builder.SetOption(std::make_unique<Frugal>());
//
// Thread rule: called by the thread that builds.
#ifndef VERBENA_RPC_SERVER_BUILDER_OPTION_H_
#define VERBENA_RPC_SERVER_BUILDER_OPTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rpc/channel_arguments.h"
#include "rpc/server_builder_plugin.h"

namespace rpc {

class ServerBuilderOption {
 public:
  virtual ~ServerBuilderOption() = default;

  // Each once, when the server is built, before its plugins are asked.
  virtual void UpdateArguments(ChannelArguments* arguments) = 0;
  // May add plugins to those of the process (InternalAddPluginFactory) and of
  // options before this one.
  virtual void UpdatePlugins(
      std::vector<std::unique_ptr<ServerBuilderPlugin>>* plugins) = 0;
};

// An option that sets one argument; see channel_arguments.h for the names.
std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, const std::string& value);
std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, int value);
std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, int64_t value);
std::unique_ptr<ServerBuilderOption> MakeChannelArgumentOption(
    const std::string& name, void* value);

}  // namespace rpc

#endif  // VERBENA_RPC_SERVER_BUILDER_OPTION_H_
