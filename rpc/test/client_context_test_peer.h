// Lets a mock of a stub say what a server sent as initial metadata, and see
// what the caller added.
//
//   rpc::testing::ClientContextTestPeer(context).AddServerInitialMetadata(
//       "shard", "7");
//
// Thread rule: as the context.
#ifndef VERBENA_RPC_TEST_CLIENT_CONTEXT_TEST_PEER_H_
#define VERBENA_RPC_TEST_CLIENT_CONTEXT_TEST_PEER_H_

#include <map>
#include <string>

#include "rpc/client_context.h"

namespace rpc::testing {

class ClientContextTestPeer {
 public:
  explicit ClientContextTestPeer(ClientContext* context) : context_(*context) {}

  // REQUIRES: a legal pair (metadata.h).
  void AddServerInitialMetadata(const std::string& key,
                                const std::string& value);

  std::multimap<std::string, std::string> GetSendInitialMetadata() const;

 private:
  ClientContext& context_;
};

}  // namespace rpc::testing

#endif  // VERBENA_RPC_TEST_CLIENT_CONTEXT_TEST_PEER_H_
