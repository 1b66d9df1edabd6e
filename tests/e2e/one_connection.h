// A server and a client of it that knows whether its connection is still the
// first one: what is wrong with one call is to cost no other.
//
//   OneConnection ends(&service);
//   ASSERT_TRUE(ends.ok());
//   ... a call on ends.channel() that fails ...
//   EXPECT_TRUE(ends.IsAlive());
//
// Thread rule: none of its own.
#ifndef VERBENA_TESTS_E2E_ONE_CONNECTION_H_
#define VERBENA_TESTS_E2E_ONE_CONNECTION_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"

namespace e2e {

class OneConnection {
 public:
  explicit OneConnection(rpc::Service* service,
                         const Arguments& server_arguments = {},
                         const Arguments& client_arguments = {});

  // Whether server and client found each other.
  testing::AssertionResult ok() const;
  // Whether another call succeeds, and came by the first connection.
  testing::AssertionResult IsAlive() const;

  const std::shared_ptr<rpc::Channel>& channel() const { return channel_; }
  Server& server() { return server_; }

 private:
  Server server_;
  std::unique_ptr<Client> client_;  // null without a server
  std::shared_ptr<rpc::Channel> channel_;
  std::string peer_;
};

}  // namespace e2e

#endif  // VERBENA_TESTS_E2E_ONE_CONNECTION_H_
