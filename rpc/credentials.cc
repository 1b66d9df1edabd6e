#include "rpc/credentials.h"

namespace rpc {
namespace {

class InsecureChannel final : public ChannelCredentials {};
class InsecureServer final : public ServerCredentials {};

}  // namespace

std::shared_ptr<ChannelCredentials> InsecureChannelCredentials() {
  return std::make_shared<InsecureChannel>();
}

std::shared_ptr<ServerCredentials> InsecureServerCredentials() {
  return std::make_shared<InsecureServer>();
}

}  // namespace rpc
