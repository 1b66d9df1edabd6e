#include "rpc/test/client_context_test_peer.h"

#include "rpc/test/received_pair.h"

namespace rpc::testing {

void ClientContextTestPeer::AddServerInitialMetadata(const std::string& key,
                                                     const std::string& value) {
  AddReceivedPair(internal::ReceivedMetadata::From::kServer, key, value,
                  context_.received_);
}

std::multimap<std::string, std::string>
ClientContextTestPeer::GetSendInitialMetadata() const {
  if (context_.sent_ == nullptr) return {};
  return context_.sent_->pairs;
}

}  // namespace rpc::testing
