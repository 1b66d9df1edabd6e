// Lets a test of a handler say what its client sent as metadata, and see what
// the handler added.
//
//   rpc::ServerContext context;
//   rpc::testing::ServerContextTestSpouse spouse(&context);
//   spouse.AddClientMetadata("user", "ada");
//   service.Get(&context, &request, &response);
//   EXPECT_EQ(spouse.GetTrailingMetadata().count("shard"), 1);
//
// Thread rule: as the context.
#ifndef VERBENA_RPC_TEST_SERVER_CONTEXT_TEST_SPOUSE_H_
#define VERBENA_RPC_TEST_SERVER_CONTEXT_TEST_SPOUSE_H_

#include <map>
#include <string>

#include "rpc/server_context.h"

namespace rpc::testing {

class ServerContextTestSpouse {
 public:
  explicit ServerContextTestSpouse(ServerContextBase* context)
      : context_(*context) {}

  // REQUIRES: a legal pair (metadata.h).
  void AddClientMetadata(const std::string& key, const std::string& value);

  std::multimap<std::string, std::string> GetInitialMetadata() const;
  std::multimap<std::string, std::string> GetTrailingMetadata() const;

 private:
  ServerContextBase& context_;
};

}  // namespace rpc::testing

#endif  // VERBENA_RPC_TEST_SERVER_CONTEXT_TEST_SPOUSE_H_
