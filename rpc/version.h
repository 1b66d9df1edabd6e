// Which Verbena this is.
#ifndef VERBENA_RPC_VERSION_H_
#define VERBENA_RPC_VERSION_H_

#include <string>

namespace rpc {

// Verbena's own version, not gRPC's: "MAJOR.MINOR.PATCH", with "-dev" where it
// is none that was released. For logs.
std::string Version();

}  // namespace rpc

#endif  // VERBENA_RPC_VERSION_H_
