// The end of a connection in every state of its life, from either end and in
// every order, and a listener that goes on serving. Method: break it off, then
// connect once more. rdma_destroy_id(3), rdma_disconnect(3).
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "tests/conformance/connection_fixture.h"

namespace rdma::conformance {
namespace {

using testing::AnyOf;

// Ids and QPs may be destroyed in every state, from either end; the listener
// goes on serving the next client.
class ConnectionTeardownTest : public ConnectionFixture {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ConnectionFixture::SetUp());
    listener_ = Listen();
    ASSERT_NE(listener_, nullptr);
  }

  // Starts a connection and brings it to the server's kConnectRequest.
  void StartAndAwaitRequest() {
    id_ = StartConnecting(listener_->local_address());
    ASSERT_NE(id_, nullptr);
    request_ = Expect(server(), Type::kConnectRequest);
    ASSERT_NE(request_.id, nullptr);
  }

  void DropClient() {
    client().DestroyQp(qp_);
    client().manager().Destroy(id_);
  }

  // A new client gets through, whatever is left of the old one: requests that
  // nobody waits for any more are answered like any other.
  void ExpectListenerWorks() {
    // Both managers are asked here, in a loop of their own.
    pump().Unwatch(&client().manager());
    pump().Unwatch(&server().manager());
    CmId* id = StartConnecting(listener_->local_address());
    ASSERT_NE(id, nullptr);
    bool established = false;
    pump().Until(
        [&] {
          AcceptWhoeverComes();
          while (std::optional<CmEvent> event = client().manager().GetEvent()) {
            if (event->id != id) continue;
            EXPECT_EQ(event->type, Type::kEstablished) << event->status;
            established = true;
          }
          return established;
        },
        "a connection after the broken one");
    pump().Watch(&client().manager());
    pump().Watch(&server().manager());
  }

  void AcceptWhoeverComes() {
    while (std::optional<CmEvent> event = server().manager().GetEvent()) {
      if (event->type != Type::kConnectRequest) continue;
      // Of a client that has gone, the request may not be answered any more.
      server()
          .manager()
          .Accept(event->id, server().CreateQp({}), {})
          .IgnoreError();
    }
  }

  CmId* listener_ = nullptr;
  CmId* id_ = nullptr;
  CmEvent request_;
};
CONFORMANCE_SUITE(ConnectionTeardownTest);

// A program that sleeps on the descriptor sleeps on once the event that it woke
// for is gone with its id.
TEST_P(ConnectionTeardownTest, AnEventGoesWithItsIdAndWakesNobody) {
  SocketAddress nobody = listener_->local_address();
  server().manager().Destroy(listener_);
  ConnectionManager& manager = client().manager();
  pollfd descriptor = {.fd = manager.fd(), .events = POLLIN};
  id_ = StartConnecting(nobody);
  ASSERT_NE(id_, nullptr);
  ASSERT_EQ(poll(&descriptor, 1, absl::ToInt64Milliseconds(pump().patience())),
            1);
  DropClient();
  EXPECT_FALSE(manager.GetEvent().has_value());
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
}

TEST_P(ConnectionTeardownTest, TheClientGoesWhileConnecting) {
  id_ = StartConnecting(listener_->local_address());
  ASSERT_NE(id_, nullptr);
  DropClient();
  ExpectListenerWorks();
}

TEST_P(ConnectionTeardownTest, TheClientGoesBeforeTheAnswer) {
  StartAndAwaitRequest();
  DropClient();
  // The answer leads nowhere, and the server hears of it: at once, or by a
  // disconnection.
  ibv_qp* qp = server().CreateQp({});
  if (server().manager().Accept(request_.id, qp, {}).ok()) {
    CmEvent event = Next(server());
    if (event.type == Type::kEstablished) event = Next(server());
    EXPECT_THAT(event.type, AnyOf(Type::kDisconnected, Type::kConnectFailed));
    EXPECT_EQ(event.id, request_.id);
  }
  server().DestroyQp(qp);
  server().manager().Destroy(request_.id);
  ExpectListenerWorks();
}

// Never answered, only dropped: that is a refusal, at the latest at the
// client's time limit.
TEST_P(ConnectionTeardownTest, TheServerDropsTheRequest) {
  StartAndAwaitRequest();
  server().manager().Destroy(request_.id);
  EXPECT_EQ(Expect(client(), Type::kConnectFailed).id, id_);
  ExpectListenerWorks();
}

TEST_P(ConnectionTeardownTest, TheServerGoesRightAfterAccepting) {
  StartAndAwaitRequest();
  ibv_qp* qp = server().CreateQp({});
  ASSERT_TRUE(server().manager().Accept(request_.id, qp, {}).ok());
  server().DestroyQp(qp);
  server().manager().Destroy(request_.id);
  CmEvent event = Next(client());
  if (event.type == Type::kEstablished) event = Next(client());
  EXPECT_THAT(event.type, AnyOf(Type::kDisconnected, Type::kConnectFailed));
  DropClient();
  ExpectListenerWorks();
}

TEST_P(ConnectionTeardownTest, TheListenerGoesAndItsConnectionsStay) {
  StartAndAwaitRequest();
  ibv_qp* qp = server().CreateQp({});
  server().manager().Destroy(listener_);
  ASSERT_TRUE(server().manager().Accept(request_.id, qp, {}).ok());
  Expect(client(), Type::kEstablished);
  Expect(server(), Type::kEstablished);
  ASSERT_EQ(0, PostReceive(qp, {.wr_id = 1}));
  ASSERT_EQ(0, Post(qp_, SendWr(2).Imm(htonl(3)).Inline()));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 0));
}

TEST_P(ConnectionTeardownTest, AConnectionAfterAConnectFailureUsesANewQp) {
  StartAndAwaitRequest();
  EXPECT_TRUE(server().manager().Reject(request_.id, "full").ok());
  EXPECT_TRUE(Expect(client(), Type::kConnectFailed).rejected);
  DropClient();
  server().manager().Destroy(request_.id);
  ExpectListenerWorks();
}

// The manager goes with everything that is under way.
TEST_P(ConnectionTeardownTest, TheServersManagerGoes) {
  StartAndAwaitRequest();
  server().DestroyManager();
  EXPECT_EQ(Expect(client(), Type::kConnectFailed).id, id_);
}

TEST_P(ConnectionTeardownTest, TheClientsManagerGoes) {
  StartAndAwaitRequest();
  client().DestroyQp(qp_);
  client().DestroyManager();
  ibv_qp* qp = server().CreateQp({});
  server().manager().Accept(request_.id, qp, {}).IgnoreError();
  pump().TurnFor(pump().silence());
  server().DestroyQp(qp);
  server().manager().Destroy(request_.id);
}

TEST_P(ConnectionTeardownTest, NoEventNamesADestroyedId) {
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  // Its end is on the way when the server destroys its own id.
  client().manager().Disconnect(link.client_id);
  server().DestroyQp(link.server);
  server().manager().Destroy(link.server_id);
  pump().ExpectSilence(&server().manager());
  client().DestroyQp(link.client);
}

// A program that has forked has its descriptors twice.
TEST_P(ConnectionTeardownTest, AForkedChildKeepsNoConnectionOpen) {
  StartAndAwaitRequest();
  ibv_qp* qp = server().CreateQp({});
  ASSERT_TRUE(server().manager().Accept(request_.id, qp, {}).ok());
  Expect(client(), Type::kEstablished);
  Expect(server(), Type::kEstablished);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent) sleep(1);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  server().DestroyQp(qp);
  server().manager().Destroy(request_.id);
  EXPECT_EQ(Expect(client(), Type::kDisconnected).id, id_);
  DropClient();
  ExpectListenerWorks();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace rdma::conformance
