// Connecting: requests, private data, rejection, addresses in use, time limits,
// data that overtakes the handshake. Method: the test plays both programs, one
// event at a time. rdma_connect(3), rdma_accept(3), rdma_reject(3),
// rdma_listen(3), rdma_disconnect(3), rdma_get_cm_event(3).
#include <poll.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/connection_fixture.h"

namespace rdma::conformance {
namespace {

using testing::AnyOf;

class ConnectionTest : public ConnectionFixture {};
CONFORMANCE_SUITE(ConnectionTest);

TEST_P(ConnectionTest, CarriesPrivateDataBothWaysAtFullLength) {
  for (size_t scale : {0, 1, 2}) {
    const std::string hello = Bytes(kMaxConnectPrivateData * scale / 2);
    const std::string answer = Bytes(kMaxAcceptPrivateData * scale / 2);
    int listening = 0;
    int connecting = 0;
    CmId* listener = Listen(&listening);
    ASSERT_NE(listener, nullptr);
    CmId* id = StartConnecting(listener->local_address(),
                               {.private_data = hello}, &connecting);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->context, &connecting);
    EXPECT_EQ(listener->context, &listening);

    CmEvent request = Expect(server(), Type::kConnectRequest);
    EXPECT_EQ(request.listener, listener);
    ASSERT_NE(request.id, nullptr);
    ExpectPadded(request.private_data, hello);
    ibv_qp* qp = server().CreateQp({});
    ASSERT_TRUE(server()
                    .manager()
                    .Accept(request.id, qp, {.private_data = answer})
                    .ok());
    CmEvent established = Expect(client(), Type::kEstablished);
    EXPECT_EQ(established.id, id);
    ExpectPadded(established.private_data, answer);
    EXPECT_EQ(Expect(server(), Type::kEstablished).id, request.id);
  }
}

TEST_P(ConnectionTest, RefusesMorePrivateDataThanFits) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  ibv_qp* qp = client().CreateQp({});
  EXPECT_FALSE(client()
                   .manager()
                   .Connect(listener->local_address(), qp,
                            {.private_data = Bytes(kMaxConnectPrivateData + 1)},
                            absl::Seconds(1), nullptr)
                   .ok());
  CmId* id = StartConnecting(listener->local_address());
  ASSERT_NE(id, nullptr);
  CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  ibv_qp* accepting = server().CreateQp({});
  EXPECT_FALSE(server()
                   .manager()
                   .Accept(request.id, accepting,
                           {.private_data = Bytes(kMaxAcceptPrivateData + 1)})
                   .ok());
  // Nothing is decided by a refused answer.
  EXPECT_TRUE(server().manager().Accept(request.id, accepting, {}).ok());
  Expect(client(), Type::kEstablished);
}

// Each side hears what the other one offers of itself; its initiator depth then
// bounds our responder resources and the other way round.
TEST_P(ConnectionTest, WaitsForEverWhereItMay) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  const auto connect = [&](absl::Duration timeout, const std::string& name) {
    absl::StatusOr<CmId*> id = client().manager().Connect(
        listener->local_address(), client().CreateQp({}),
        {.private_data = name}, timeout, nullptr);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : nullptr;
  };
  for (const absl::Duration timeout :
       {absl::InfiniteDuration(), absl::Hours(24 * 365 * 300)}) {
    CmId* patient = connect(timeout, "patient");
    // That of the hasty one of before may come late.
    CmEvent request;
    do {
      request = Expect(server(), Type::kConnectRequest);
      ASSERT_NE(request.id, nullptr);
    } while (!request.private_data.starts_with("patient"));
    // The server lets another one wait for too long.
    CmId* hasty = connect(absl::Milliseconds(1), "hasty");
    EXPECT_EQ(Expect(client(), Type::kConnectFailed).id, hasty);
    ASSERT_TRUE(
        server().manager().Accept(request.id, server().CreateQp({}), {}).ok());
    EXPECT_EQ(Expect(client(), Type::kEstablished).id, patient);
    // In which order the server hears of both is for the device to say.
    CmEvent event;
    do {
      event = Next(server());
    } while (event.type == Type::kConnectRequest);
    EXPECT_EQ(event.type, Type::kEstablished);
    EXPECT_EQ(event.id, request.id);
  }
}

TEST_P(ConnectionTest, TellsHowManyReadsThePeerOffers) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  CmId* id = StartConnecting(listener->local_address(),
                             {.responder_resources = 3, .initiator_depth = 5});
  ASSERT_NE(id, nullptr);
  CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  EXPECT_EQ(request.responder_resources, 3);
  EXPECT_EQ(request.initiator_depth, 5);
  ibv_qp* qp = server().CreateQp({});
  ASSERT_TRUE(server()
                  .manager()
                  .Accept(request.id, qp,
                          {.responder_resources = 4, .initiator_depth = 2})
                  .ok());
  CmEvent established = Expect(client(), Type::kEstablished);
  EXPECT_EQ(established.responder_resources, 4);
  EXPECT_EQ(established.initiator_depth, 2);
}

TEST_P(ConnectionTest, ARejectionSaysWhy) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  for (const std::string& reason :
       {std::string("this server speaks version 3, you speak 2"), std::string(),
        Bytes(kMaxRejectPrivateData)}) {
    CmId* id = StartConnecting(listener->local_address());
    ASSERT_NE(id, nullptr);
    CmEvent request = Expect(server(), Type::kConnectRequest);
    ASSERT_NE(request.id, nullptr);
    EXPECT_TRUE(server().manager().Reject(request.id, reason).ok());
    CmEvent failed = Expect(client(), Type::kConnectFailed);
    EXPECT_EQ(failed.id, id);
    EXPECT_TRUE(failed.rejected);
    EXPECT_FALSE(failed.status.ok());
    ExpectPadded(failed.private_data, reason);
    server().manager().Destroy(request.id);
    client().DestroyQp(qp_);
    client().manager().Destroy(id);
  }
}

// Longer than fits, the reason is cut or refused, as the device likes.
TEST_P(ConnectionTest, ALongReasonDoesNoHarm) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  ASSERT_NE(StartConnecting(listener->local_address()), nullptr);
  CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  const std::string reason = Bytes(2 * kMaxRejectPrivateData);
  const std::string start = reason.substr(0, kMaxRejectPrivateData);
  if (!server().manager().Reject(request.id, reason).ok()) {
    ASSERT_TRUE(server().manager().Reject(request.id, start).ok());
  }
  CmEvent failed = Expect(client(), Type::kConnectFailed);
  EXPECT_TRUE(failed.rejected);
  EXPECT_EQ(failed.private_data, start);
}

// A program may sleep on the manager's descriptor until there is something.
TEST_P(ConnectionTest, TheDescriptorTellsOfEvents) {
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  pollfd descriptor = {.fd = server().manager().fd(), .events = POLLIN};
  EXPECT_EQ(poll(&descriptor, 1, 0), 0);
  EXPECT_FALSE(server().manager().GetEvent().has_value());
  ASSERT_NE(StartConnecting(listener->local_address()), nullptr);
  pump().Unwatch(&server().manager());
  std::optional<CmEvent> request;
  EXPECT_TRUE(pump().Until(
      [&] {
        if (poll(&descriptor, 1, 1) == 1) {
          request = server().manager().GetEvent();
        }
        return request.has_value();
      },
      "a request that wakes the server"));
  pump().Watch(&server().manager());
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->type, Type::kConnectRequest);
}

// The client may send as soon as it is established, which is before the server
// hears that it is: receives that were posted before Accept complete all the
// same, and in order.
TEST_P(ConnectionTest, DataMayOvertakeTheServersEstablishedEvent) {
  Region near = client().Allocate(4096);
  Region far = server().Allocate(4096);
  ASSERT_FALSE(near.empty() || far.empty());
  near.Fill(1);
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  CmId* id = StartConnecting(listener->local_address());
  ASSERT_NE(id, nullptr);
  ibv_qp* client_qp = qp_;
  CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  ibv_qp* server_qp = server().CreateQp({});
  ASSERT_TRUE(server().manager().Accept(request.id, server_qp, {}).ok());
  // In RTR or RTS, so that receives are taken.
  for (uint64_t wr_id = 0; wr_id < 4; ++wr_id) {
    ASSERT_EQ(
        0, PostReceive(server_qp, {.wr_id = wr_id, .sges = {far.sge(0, 64)}}));
  }
  // From here on the server's manager is not asked for anything.
  pump().Unwatch(&server().manager());
  Expect(client(), Type::kEstablished);
  for (uint64_t wr_id = 0; wr_id < 4; ++wr_id) {
    ASSERT_EQ(0, Post(client_qp, SendWr(wr_id).Sge(near.sge(0, 10 + wr_id))));
  }
  for (uint64_t wr_id = 0; wr_id < 4; ++wr_id) {
    EXPECT_THAT(Await(server().recv_cq()), Received(wr_id, 10 + wr_id));
  }
  pump().Watch(&server().manager());
  EXPECT_EQ(Expect(server(), Type::kEstablished).id, request.id);
  // And the server answers.
  ASSERT_EQ(0, PostReceive(client_qp, {.wr_id = 9, .sges = {near.sge(0, 64)}}));
  ASSERT_EQ(0, Post(server_qp, SendWr(1).Sge(far.sge(0, 8))));
  EXPECT_THAT(Await(client().recv_cq()), Received(9, 8));
  client().DestroyQp(client_qp);
  server().DestroyQp(server_qp);
}

// Disconnecting flushes both ends; what had arrived stays arrived.
TEST_P(ConnectionTest, DisconnectingFlushesBothEnds) {
  Region near = client().Allocate(4096);
  Region far = server().Allocate(4096);
  ASSERT_FALSE(near.empty() || far.empty());
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  for (uint64_t wr_id = 0; wr_id < 3; ++wr_id) {
    ASSERT_EQ(0, PostReceive(link.server,
                             {.wr_id = wr_id, .sges = {far.sge(0, 64)}}));
    ASSERT_EQ(0, PostReceive(link.client,
                             {.wr_id = wr_id, .sges = {near.sge(0, 64)}}));
  }
  ASSERT_EQ(0, Post(link.client, SendWr(10).Sge(near.sge(0, 8))));
  EXPECT_THAT(Await(client().send_cq()), Succeeded(10));
  client().manager().Disconnect(link.client_id);
  for (uint64_t wr_id = 0; wr_id < 3; ++wr_id) {
    EXPECT_THAT(Await(client().recv_cq()), Flushed(wr_id));
  }
  EXPECT_EQ(StateOf(client().device(), link.client), IBV_QPS_ERR);
  EXPECT_EQ(Expect(server(), Type::kDisconnected).id, link.server_id);
  server().manager().Disconnect(link.server_id);
  EXPECT_THAT(Await(server().recv_cq()), Received(0, 8));
  EXPECT_THAT(Await(server().recv_cq()), Flushed(1));
  EXPECT_THAT(Await(server().recv_cq()), Flushed(2));
  EXPECT_EQ(StateOf(server().device(), link.server), IBV_QPS_ERR);
  // Once more does no harm.
  client().manager().Disconnect(link.client_id);
  server().manager().Disconnect(link.server_id);
  client().DestroyQp(link.client);
  server().DestroyQp(link.server);
}

// The last words of a peer are heard: what it sent and saw completed before it
// closed is received, although the receiver looked only afterwards.
TEST_P(ConnectionTest, WhatWasSentBeforeTheCloseIsReceived) {
  Region near = client().Allocate(4096);
  Region far = server().Allocate(4096);
  ASSERT_FALSE(near.empty() || far.empty());
  Link link;
  ASSERT_TRUE(Connect({}, &link));
  for (uint64_t wr_id = 0; wr_id < 12; ++wr_id) {
    ASSERT_EQ(0, PostReceive(link.server,
                             {.wr_id = wr_id, .sges = {far.sge(0, 64)}}));
  }
  for (uint64_t wr_id = 0; wr_id < 10; ++wr_id) {
    ASSERT_EQ(0, Post(link.client, SendWr(wr_id).Imm(htonl(wr_id)).Inline()));
  }
  EXPECT_EQ(Await(client().send_cq(), 10).back().status, IBV_WC_SUCCESS);
  client().manager().Disconnect(link.client_id);
  Expect(server(), Type::kDisconnected);
  server().manager().Disconnect(link.server_id);
  std::vector<ibv_wc> found = Await(server().recv_cq(), 10);
  for (uint64_t wr_id = 0; wr_id < found.size(); ++wr_id) {
    EXPECT_THAT(found[wr_id], Received(wr_id, 0));
    EXPECT_EQ(found[wr_id].imm_data, htonl(wr_id));
  }
  EXPECT_THAT(Await(server().recv_cq()), Flushed(10));
  EXPECT_THAT(Await(server().recv_cq()), Flushed(11));
  client().DestroyQp(link.client);
  server().DestroyQp(link.server);
}

TEST_P(ConnectionTest, MakesManyConnectionsAtOnce) {
  const int count = TheProviderUnderTest().many_connections;
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  std::map<CmId*, ibv_qp*> connecting;
  for (int i = 0; i < count; ++i) {
    CmId* id = StartConnecting(listener->local_address());
    ASSERT_NE(id, nullptr) << i;
    connecting[id] = qp_;
  }
  std::map<uint32_t, ibv_qp*> accepted;
  for (int i = 0; i < count; ++i) {
    CmEvent request;
    do {
      std::optional<CmEvent> event = pump().Await(&server().manager());
      ASSERT_TRUE(event.has_value()) << i;
      request = *event;
    } while (request.type == Type::kEstablished);
    ASSERT_EQ(request.type, Type::kConnectRequest) << request.status;
    ibv_qp* qp = server().CreateQp({});
    ASSERT_NE(qp, nullptr) << i;
    ASSERT_TRUE(server().manager().Accept(request.id, qp, {}).ok()) << i;
    ASSERT_EQ(0, PostReceive(qp, {.wr_id = 1}));
    accepted[qp->qp_num] = qp;
  }
  for (int i = 0; i < count; ++i) {
    CmEvent established = Expect(client(), Type::kEstablished);
    ASSERT_EQ(connecting.count(established.id), 1u) << i;
    ASSERT_EQ(
        0, Post(connecting[established.id], SendWr(i).Imm(htonl(i)).Inline()));
  }
  // Each message comes by a connection of its own.
  for (int i = 0; i < count; ++i) {
    const ibv_wc wc = Await(server().recv_cq());
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(accepted.erase(wc.qp_num), 1u);
  }
}

TEST_P(ConnectionTest, ConnectsAndDisconnectsAgainAndAgain) {
  for (int round = 0; round < 50 && !HasFailure(); ++round) {
    Link link;
    ASSERT_TRUE(Connect({}, &link));
    ASSERT_EQ(0, PostReceive(link.server, {.wr_id = 1}));
    ASSERT_EQ(0, Post(link.client, SendWr(round).Imm(htonl(round)).Inline()));
    EXPECT_THAT(Await(server().recv_cq()), Received(1, 0));
    EXPECT_THAT(Await(client().send_cq()), Succeeded(round));
    Disconnect(&link);
  }
}

}  // namespace
}  // namespace rdma::conformance
