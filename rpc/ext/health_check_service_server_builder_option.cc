#include "rpc/ext/health_check_service_server_builder_option.h"

namespace rpc {

void HealthCheckServiceServerBuilderOption::UpdateArguments(
    ChannelArguments* arguments) {
  arguments->SetPointer(kHealthCheckServiceInterfaceArg, service_.release());
}

}  // namespace rpc
