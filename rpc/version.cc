#include "rpc/version.h"

namespace rpc {

std::string Version() { return "0.1.0-dev"; }

}  // namespace rpc
