// What contexts say besides deadlines and metadata.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/rpc/echo_service.h"
#include "tests/rpc/loopback_transport.h"

namespace rpc::testing {
namespace {

class ContextMembersTest : public ::testing::Test {
 protected:
  // `in_handler` sees the server's context.
  Status Say(ClientContext& context,
             std::function<void(ServerContext*)> in_handler = nullptr,
             const SayRequest& request = SayRequest()) {
    service_.before = std::move(in_handler);
    SayResponse response;
    return echo_.stub().Say(&context, request, &response);
  }

  SyncEcho service_;
  EchoServer echo_{{.threads = 2}, &service_};
};

TEST_F(ContextMembersTest, TheAuthorityThatACallNamesReachesTheServer) {
  ClientContext context;
  context.set_authority("db.example");
  context.AddMetadata("user", "ada");
  std::string authority;
  size_t pairs = 0;
  EXPECT_TRUE(Say(context, [&](ServerContext* server) {
                authority = std::string(server->ExperimentalGetAuthority());
                pairs = server->client_metadata().count("user");
              }).ok());
  EXPECT_EQ(authority, "db.example");
  EXPECT_EQ(pairs, 1u);
}

TEST_F(ContextMembersTest, NeitherPeerIsAuthenticated) {
  ClientContext context;
  const auto expect_insecure = [](const AuthContext& peer) {
    EXPECT_FALSE(peer.IsPeerAuthenticated());
    EXPECT_TRUE(peer.GetPeerIdentity().empty());
    EXPECT_EQ(peer.GetPeerIdentityPropertyName(), "");
    EXPECT_EQ(peer.FindPropertyValues("transport_security_type"),
              std::vector<string_ref>{"insecure"});
    EXPECT_TRUE(peer.FindPropertyValues("x509_common_name").empty());
    int properties = 0;
    for (const AuthProperty& property : peer) {
      EXPECT_FALSE(property.first.empty());
      ++properties;
    }
    EXPECT_EQ(properties, 2);
  };
  EXPECT_TRUE(Say(context, [&](ServerContext* server) {
                expect_insecure(*server->auth_context());
              }).ok());
  expect_insecure(*context.auth_context());
}

TEST_F(ContextMembersTest, CallCredentialsAreRefused) {
  class Token final : public CallCredentials {};
  ClientContext context;
  EXPECT_EQ(context.credentials(), nullptr);
  const auto token = std::make_shared<Token>();
  context.set_credentials(token);
  EXPECT_EQ(context.credentials(), token);
  EXPECT_EQ(Say(context).error_code(), StatusCode::UNAUTHENTICATED);

  ClientContext without;
  without.set_credentials(nullptr);
  EXPECT_TRUE(Say(without).ok());
}

TEST_F(ContextMembersTest, AClientKnowsItsPeerOnceItCalled) {
  ClientContext context;
  EXPECT_EQ(context.peer(), "");
  EXPECT_TRUE(Say(context).ok());
  EXPECT_EQ(context.peer(), "ipv4:127.0.0.1:50051");
}

TEST_F(ContextMembersTest, AFailureHasAStringForLogs) {
  ClientContext well;
  EXPECT_TRUE(Say(well).ok());
  EXPECT_EQ(well.debug_error_string(), "");

  ClientContext context;
  SayRequest request;
  request.set_status_code(StatusCode::NOT_FOUND);
  request.set_status_message("no such key");
  EXPECT_EQ(Say(context, nullptr, request).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(context.debug_error_string(),
            "NOT_FOUND from ipv4:127.0.0.1:50051: no such key");

  ClientContext late;
  late.set_deadline(absl::Now() + absl::Milliseconds(20));
  SayRequest sleeping;
  sleeping.set_wait_until_cancelled(true);
  EXPECT_EQ(Say(late, nullptr, sleeping).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(late.debug_error_string(), "DEADLINE_EXCEEDED");
}

TEST_F(ContextMembersTest, CostsAreTrailingMetadata) {
  ClientContext context;
  EXPECT_TRUE(Say(context, [](ServerContext* server) {
                server->SetLoadReportingCosts({"cpu", "disk"});
              }).ok());
  EXPECT_EQ(context.GetServerTrailingMetadata().count("lb-cost-bin"), 2u);
}

TEST_F(ContextMembersTest, ThereIsNoCensus) {
  ClientContext context;
  EXPECT_EQ(context.census_context(), nullptr);
  auto* const census = reinterpret_cast<struct census_context*>(&context);
  context.set_census_context(census);
  EXPECT_EQ(context.census_context(), census);
  EXPECT_TRUE(Say(context, [](ServerContext* server) {
                EXPECT_EQ(server->census_context(), nullptr);
              }).ok());
}

TEST(PropagationOptionsTest, BitsAreGrpcs) {
  EXPECT_EQ(PropagationOptions().c_bitmask(), 0xffffu);
  EXPECT_EQ(PropagationOptions()
                .disable_deadline_propagation()
                .disable_census_stats_propagation()
                .disable_census_tracing_propagation()
                .disable_cancellation_propagation()
                .c_bitmask(),
            0xfff0u);
  EXPECT_EQ(PropagationOptions()
                .disable_cancellation_propagation()
                .enable_cancellation_propagation()
                .c_bitmask(),
            0xffffu);
}

}  // namespace
}  // namespace rpc::testing
