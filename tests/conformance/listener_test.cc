// Listening, and connecting to where somebody listens, nobody does, or somebody
// says nothing. rdma_listen(3), rdma_bind_addr(3), rdma_connect(3).
#include <string>

#include "tests/conformance/connection_fixture.h"

namespace rdma::conformance {
namespace {

using testing::AnyOf;

class ListenerTest : public ConnectionFixture {};
CONFORMANCE_SUITE(ListenerTest);

TEST_P(ListenerTest, ListensOnAPortOfItsOwnChoice) {
  CmId* first = Listen();
  CmId* second = Listen();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_NE(first->local_address().port(), 0);
  EXPECT_NE(second->local_address().port(), first->local_address().port());
  EXPECT_EQ(first->local_address().family(), ServerAddress().family());
}

TEST_P(ListenerTest, KnowsItsAddresses) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  CmId* id = StartConnecting(listener->local_address());
  ASSERT_NE(id, nullptr);
  CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  EXPECT_EQ(id->peer_address().ToString(),
            listener->local_address().ToString());
  EXPECT_EQ(request.id->local_address().port(),
            listener->local_address().port());
  EXPECT_EQ(request.id->peer_address().family(),
            listener->local_address().family());
}

TEST_P(ListenerTest, NobodyListensThere) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  const SocketAddress address = listener->local_address();
  server().manager().Destroy(listener);
  CmId* id = StartConnecting(address);
  ASSERT_NE(id, nullptr);
  CmEvent failed = Expect(client(), Type::kConnectFailed);
  EXPECT_EQ(failed.id, id);
  EXPECT_FALSE(failed.rejected);
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kUnavailable);
  // The message tells whom it could not reach.
  EXPECT_THAT(std::string(failed.status.message()),
              testing::HasSubstr(std::to_string(address.port())));
}

TEST_P(ListenerTest, APortIsListenedOnOnce) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  absl::StatusOr<CmId*> second =
      server().manager().Listen(listener->local_address(), 8, nullptr);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists)
      << second.status();
  // Nor on every address at once while one of them is taken.
  SocketAddress any = *SocketAddress::FromNumeric(
      ServerAddress().family() == AF_INET ? "0.0.0.0" : "::",
      listener->local_address().port());
  second = server().manager().Listen(any, 8, nullptr);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists)
      << second.status();
  // Freed, it may be had again.
  const SocketAddress address = listener->local_address();
  server().manager().Destroy(listener);
  EXPECT_TRUE(server().manager().Listen(address, 8, nullptr).ok());
}

TEST_P(ListenerTest, AWildcardListenerAnswersForItsAddresses) {
  SocketAddress any = *SocketAddress::FromNumeric(
      ServerAddress().family() == AF_INET ? "0.0.0.0" : "::", 0);
  absl::StatusOr<CmId*> listener = server().manager().Listen(any, 8, nullptr);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const uint16_t port = (*listener)->local_address().port();
  ASSERT_NE(port, 0);
  ASSERT_NE(StartConnecting(ServerAddress(port)), nullptr);
  EXPECT_EQ(Expect(server(), Type::kConnectRequest).listener, *listener);
  // The exact address of that port is taken with it.
  EXPECT_EQ(server()
                .manager()
                .Listen(ServerAddress(port), 8, nullptr)
                .status()
                .code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_P(ListenerTest, ConnectsOverIpv6Addresses) {
  const std::string& host = TheProviderUnderTest().server_address_v6;
  if (host.empty()) GTEST_SKIP() << "no IPv6 address to test with";
  SocketAddress address = *SocketAddress::FromNumeric(host, 0);
  absl::StatusOr<CmId*> listener =
      server().manager().Listen(address, 8, nullptr);
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_NE(StartConnecting((*listener)->local_address()), nullptr);
  CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  ibv_qp* qp = server().CreateQp({});
  ASSERT_TRUE(server().manager().Accept(request.id, qp, {}).ok());
  Expect(client(), Type::kEstablished);
  EXPECT_EQ(request.id->local_address().family(), AF_INET6);
}

// A server that never answers: the client hears at its time limit.
TEST_P(ListenerTest, GivesUpOnASilentServer) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  ibv_qp* qp = client().CreateQp({});
  // Long enough for the request to be sent.
  absl::StatusOr<CmId*> id = client().manager().Connect(
      listener->local_address(), qp, {}, 20 * pump().silence(), nullptr);
  ASSERT_TRUE(id.ok()) << id.status();
  CmEvent request = Expect(server(), Type::kConnectRequest);
  CmEvent failed = Expect(client(), Type::kConnectFailed);
  EXPECT_EQ(failed.id, *id);
  EXPECT_FALSE(failed.rejected);
  EXPECT_THAT(failed.status.code(), AnyOf(absl::StatusCode::kDeadlineExceeded,
                                          absl::StatusCode::kUnavailable));
  // The late answer finds nobody; the server's id ends as any does.
  if (request.id == nullptr) return;
  ibv_qp* late = server().CreateQp({});
  if (server().manager().Accept(request.id, late, {}).ok()) {
    pump().Turn();
  }
  server().DestroyQp(late);
  server().manager().Destroy(request.id);
}

}  // namespace
}  // namespace rdma::conformance
