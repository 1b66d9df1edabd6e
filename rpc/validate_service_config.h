// gRPC C++'s check of a service config, of its namespace experimental.
//
//   const std::string error =
//   rpc::experimental::ValidateServiceConfigJSON(json); if (!error.empty()) ...
//
// Thread rule: a pure function.
#ifndef VERBENA_RPC_VALIDATE_SERVICE_CONFIG_H_
#define VERBENA_RPC_VALIDATE_SERVICE_CONFIG_H_

#include <string>

namespace rpc::experimental {

// Empty where a channel takes it; else what is wrong with it. Which fields
// there are says rpc/routing/service_config.h.
std::string ValidateServiceConfigJSON(const std::string& service_config_json);

}  // namespace rpc::experimental

#endif  // VERBENA_RPC_VALIDATE_SERVICE_CONFIG_H_
