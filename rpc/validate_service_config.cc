#include "rpc/validate_service_config.h"

#include "rpc/routing/service_config.h"

namespace rpc::experimental {

std::string ValidateServiceConfigJSON(const std::string& service_config_json) {
  return std::string(
      routing::ServiceConfig::Parse(service_config_json).status().message());
}

}  // namespace rpc::experimental
