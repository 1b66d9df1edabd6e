// The service by which a server tells of its services. See
// proto_server_reflection_plugin.h, and the .proto files in
// proto/grpc/reflection/.
//
// Its versions differ by their names alone: one class serves each, by v1's
// messages.
//
// Thread rule: set up by one thread; then any number of streams.
#ifndef VERBENA_RPC_EXT_REFLECTION_SERVICE_H_
#define VERBENA_RPC_EXT_REFLECTION_SERVICE_H_

#include <string>
#include <vector>

#include "rpc/service.h"

namespace rpc::reflection {

// The paths of the method, a version each.
inline constexpr const char* kReflectionPaths[] = {
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
};

class ReflectionService final : public Service {
 public:
  // `path`: one of the above.
  explicit ReflectionService(const char* path);

  // What it answers list_services with, as long as the server lives. Before the
  // first call.
  void SetServiceList(const std::vector<std::string>* names) { names_ = names; }
  const std::vector<std::string>& service_list() const { return *names_; }

 private:
  const std::vector<std::string>* names_ = nullptr;
};

}  // namespace rpc::reflection

#endif  // VERBENA_RPC_EXT_REFLECTION_SERVICE_H_
