// Goal: what only real devices have. Connections get the timers, counts and MTU
// that were asked for; inline data, routes and unreachable addresses are found
// out and explained; strangers on the TCP set-up's port do no harm. Method: one
// device connected to itself, by each way of setting connections up; see
// tests/conformance/hardware_provider_under_test.cc for the environment.
#include <sys/socket.h>

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma_transport/provider/unique_fd.h"
#include "rdma_transport/verbs/protection_domain.h"
#include "tests/conformance/connection_fixture.h"

namespace rdma::conformance {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class HardwareDeviceTest : public ConnectionFixture {
 protected:
  ibv_qp_attr AttributesOf(Device& device, ibv_qp* qp) {
    ibv_qp_attr attributes = {};
    ibv_qp_init_attr init = {};
    EXPECT_EQ(0,
              device.QueryQp(qp, &attributes,
                             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                 IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
                                 IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC |
                                 IBV_QP_MAX_DEST_RD_ATOMIC,
                             &init));
    return attributes;
  }

  // A message each way.
  void ExpectWorks(const Link& link) {
    for (const bool there : {true, false}) {
      Side& from = there ? client() : server();
      Side& to = there ? server() : client();
      ASSERT_EQ(0,
                PostReceive(there ? link.server : link.client, {.wr_id = 1}));
      ASSERT_EQ(0, Post(there ? link.client : link.server,
                        SendWr(2).Imm(htonl(3)).Inline()));
      EXPECT_THAT(Await(to.recv_cq()), Received(1, 0));
      EXPECT_THAT(Await(from.send_cq()), Succeeded(2));
    }
  }

  bool WithTcp() const {
    return TheProviderUnderTest().name.find("tcp") != std::string::npos;
  }
};
CONFORMANCE_SUITE_ONCE(HardwareDeviceTest);

TEST_P(HardwareDeviceTest, BothEndsGetTheTimersAndCountsAskedFor) {
  Link link;
  LinkOptions options;
  // READs in powers of two, which devices may round up to.
  options.client_parameters = {.responder_resources = 4,
                               .initiator_depth = 16,
                               .rnr_retry_count = 4,
                               .retry_count = 5,
                               .min_rnr_timer = 10,
                               .timeout = 13};
  options.server_parameters = {.responder_resources = 8,
                               .initiator_depth = 16,
                               .rnr_retry_count = 2,
                               .retry_count = 6,
                               .min_rnr_timer = 11,
                               .timeout = 15};
  ASSERT_TRUE(Connect(options, &link));
  const ibv_qp_attr near = AttributesOf(client().device(), link.client);
  EXPECT_EQ(near.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(near.timeout, 13);
  EXPECT_EQ(near.min_rnr_timer, 10);
  EXPECT_EQ(near.retry_cnt, 5);
  EXPECT_EQ(near.rnr_retry, 2) << "the server's word";
  EXPECT_EQ(near.max_rd_atomic, 8) << "no more than the server serves";
  const ibv_qp_attr far = AttributesOf(server().device(), link.server);
  EXPECT_EQ(far.timeout, 15);
  EXPECT_EQ(far.min_rnr_timer, 11);
  EXPECT_EQ(far.retry_cnt, 5) << "the smaller of both";
  EXPECT_EQ(far.rnr_retry, 4) << "the client's word";
  EXPECT_EQ(far.max_rd_atomic, 4) << "no more than the client serves";
  ExpectWorks(link);
}

// With the defaults nothing waits for ever, nor for half a second.
TEST_P(HardwareDeviceTest, TheDefaultsAreFinite) {
  Link link;
  LinkOptions options;
  options.client_parameters = options.server_parameters = {};
  ASSERT_TRUE(Connect(options, &link));
  const ConnectionParameters defaults;
  for (const bool near : {true, false}) {
    const ibv_qp_attr attributes =
        near ? AttributesOf(client().device(), link.client)
             : AttributesOf(server().device(), link.server);
    EXPECT_EQ(attributes.timeout, defaults.timeout);
    EXPECT_EQ(attributes.min_rnr_timer, defaults.min_rnr_timer);
    EXPECT_EQ(attributes.retry_cnt, defaults.retry_count);
    EXPECT_EQ(attributes.rnr_retry, defaults.rnr_retry_count);
  }
}

// A peer that answers nothing any more, though nobody said that it is gone.
// Seven timeouts of 67 ms; devices may take four times as long.
TEST_P(HardwareDeviceTest, ASilentPeerIsGivenUpInTime) {
  Link link;
  LinkOptions options;
  options.client_parameters = options.server_parameters = {};
  ASSERT_TRUE(Connect(options, &link));
  server().DestroyQp(link.server);
  const absl::Time start = absl::Now();
  ASSERT_EQ(0, Post(link.client, SendWr(2).Imm(htonl(3)).Inline()));
  EXPECT_EQ(Await(client().send_cq()).status, IBV_WC_RETRY_EXC_ERR);
  const absl::Duration taken = absl::Now() - start;
  EXPECT_GT(taken, absl::Milliseconds(300));
  EXPECT_LT(taken, absl::Seconds(5));
  RecordProperty("milliseconds",
                 static_cast<int>(absl::ToInt64Milliseconds(taken)));
}

TEST_P(HardwareDeviceTest, TheMtuCanBeLimited) {
  Link link;
  LinkOptions options;
  options.client_parameters.mtu = options.server_parameters.mtu = IBV_MTU_1024;
  ASSERT_TRUE(Connect(options, &link));
  EXPECT_EQ(AttributesOf(client().device(), link.client).path_mtu,
            IBV_MTU_1024);
  EXPECT_EQ(AttributesOf(server().device(), link.server).path_mtu,
            IBV_MTU_1024);
  Region from = client().Allocate(8192);
  Region to = server().Allocate(8192);
  ASSERT_FALSE(from.empty() || to.empty());
  from.Fill(1);
  ASSERT_EQ(0, PostReceive(link.server, {.wr_id = 1, .sges = {to.sge()}}));
  ASSERT_EQ(0, Post(link.client, SendWr(2).Sge(from.sge())));
  EXPECT_THAT(Await(server().recv_cq()), Received(1, 8192));
  EXPECT_EQ(to.bytes(0, 8192), from.bytes(0, 8192));
}

TEST_P(HardwareDeviceTest, TheInlineLimitIsExact) {
  Device& device = client().device();
  const uint32_t limit = device.max_inline_data();
  ibv_qp_init_attr init = {};
  init.qp_type = IBV_QPT_RC;
  init.send_cq = init.recv_cq = client().send_cq();
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = limit};
  ibv_qp* qp = device.CreateQp(client().pd(), &init);
  ASSERT_NE(qp, nullptr) << limit;
  EXPECT_GE(init.cap.max_inline_data, limit);
  EXPECT_EQ(device.DestroyQp(qp), 0);
  init.cap.max_inline_data = limit + 1;
  qp = device.CreateQp(client().pd(), &init);
  EXPECT_EQ(qp, nullptr) << limit + 1;
  if (qp != nullptr) device.DestroyQp(qp);
}

// --- Memory windows ----------------------------------------------------------

// As the transport uses them: bound by a fresh key each time, revoked by the
// peer, who is seen to have done it.
TEST_P(HardwareDeviceTest, AWindowIsBoundAgainAndItsInvalidationIsSeen) {
  Device& device = server().device();
  auto pd = ProtectionDomain::Create(&device);
  ASSERT_TRUE(pd.ok()) << pd.status();
  auto region = MemoryRegion::Create(
      pd->get(), 4096,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
  ASSERT_TRUE(region.ok()) << region.status();
  auto window = MemoryWindow::Create(pd->get());
  ASSERT_TRUE(window.ok()) << window.status();
  Link link;
  ASSERT_TRUE(Connect({.server = {.pd = (*pd)->get()}}, &link));
  for (int round = 0; round < 3; ++round) {
    const uint32_t key = (*window)->next_rkey();
    ASSERT_EQ(
        0, Post(link.server,
                BindWr(1, (*window)->get(), key,
                       {.mr = (*region)->get(),
                        .addr = reinterpret_cast<uint64_t>((*region)->data()),
                        .length = 4096,
                        .mw_access_flags = IBV_ACCESS_REMOTE_READ})));
    EXPECT_THAT(Await(server().send_cq()), Succeeded(1, IBV_WC_BIND_MW));
    (*window)->SetRkey(key);
    ASSERT_EQ(0, PostReceive(link.server, {.wr_id = 2}));
    ASSERT_EQ(0, PostReceive(link.server, {.wr_id = 3}));
    ASSERT_EQ(0, Post(link.client, SendWithInvalidateWr(4, key).Inline()));
    ASSERT_EQ(0, Post(link.client, SendWr(5).Imm(htonl(key)).Inline()));
    const ibv_wc invalidating = Await(server().recv_cq());
    EXPECT_EQ(invalidating.wr_id, 2u);
    EXPECT_NE(invalidating.wc_flags & device.invalidation_flags(), 0u);
    EXPECT_EQ(invalidating.invalidated_rkey, key);
    const ibv_wc plain = Await(server().recv_cq());
    EXPECT_EQ(plain.wr_id, 3u);
    EXPECT_EQ(plain.wc_flags & device.invalidation_flags(), 0u);
  }
  client().DestroyQp(link.client);
  server().DestroyQp(link.server);
}

// --- Addresses ---------------------------------------------------------------

TEST_P(HardwareDeviceTest, FindsTheDeviceOfAnAddress) {
  const std::unique_ptr<Provider> provider = TheProviderUnderTest().make();
  for (const auto& [use, device] :
       {std::pair(AddressUse::kConnect, &client().device()),
        std::pair(AddressUse::kListen, &server().device())}) {
    const absl::StatusOr<std::string> name =
        provider->DeviceFor(ServerAddress(50051), use, absl::Seconds(5));
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(*name, device->name());
  }
  EXPECT_TRUE(provider
                  ->DeviceFor(*SocketAddress::FromNumeric("0.0.0.0", 1),
                              AddressUse::kListen, absl::Seconds(5))
                  .ok());
}

// One that nobody has, in the network of the device.
SocketAddress Absent(const SocketAddress& present) {
  std::string host = TheProviderUnderTest().server_address;
  host.resize(host.rfind('.'));
  return *SocketAddress::FromNumeric(host + ".254", present.port());
}

TEST_P(HardwareDeviceTest, AnAbsentHostIsGivenUpInTime) {
  const absl::Duration timeout = absl::Milliseconds(300);
  ibv_qp* qp = client().CreateQp({});
  const SocketAddress absent = Absent(ServerAddress(50051));
  const absl::Time start = absl::Now();
  absl::StatusOr<CmId*> id =
      client().manager().Connect(absent, qp, {}, timeout, nullptr);
  ASSERT_TRUE(id.ok()) << id.status();
  const CmEvent failed = Expect(client(), Type::kConnectFailed);
  // ARP gives it up after 3 s.
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
  EXPECT_EQ(failed.id, *id);
  EXPECT_THAT(failed.status.code(), AnyOf(absl::StatusCode::kUnavailable,
                                          absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(std::string(failed.status.message()),
              HasSubstr(absent.ToString()));
}

TEST_P(HardwareDeviceTest, ListensOnAddressesOfThisHostOnly) {
  const absl::Status status =
      server()
          .manager()
          .Listen(*SocketAddress::FromNumeric("192.0.2.1", 50051), 4, nullptr)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("192.0.2.1:50051"));
}

// --- Strangers on the port of the TCP set-up ---------------------------------

TEST_P(HardwareDeviceTest, StrangersDoNotStopAServer) {
  if (!WithTcp()) GTEST_SKIP() << "rdma_cm's port is no TCP port";
  CmId* listener = Listen();
  ASSERT_NE(listener, nullptr);
  const SocketAddress address = listener->local_address();
  // One says nothing, one talks nonsense, one hangs up, one half a message.
  std::vector<UniqueFd> strangers;
  for (const std::string& words :
       {std::string(), std::string(1000, 'x'), std::string("VbQP\1\1")}) {
    UniqueFd& fd = strangers.emplace_back(
        socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(0, connect(fd.get(), address.get(), address.length()));
    ASSERT_EQ(static_cast<ssize_t>(words.size()),
              send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL));
  }
  strangers.emplace_back(socket(address.family(), SOCK_STREAM, 0));
  ASSERT_EQ(0,
            connect(strangers.back().get(), address.get(), address.length()));
  strangers.pop_back();
  pump().TurnFor(pump().silence());
  ASSERT_NE(StartConnecting(address), nullptr);
  CmEvent request = Expect(server(), Type::kConnectRequest);
  ASSERT_NE(request.id, nullptr);
  ibv_qp* qp = server().CreateQp({});
  ASSERT_TRUE(server().manager().Accept(request.id, qp, {}).ok());
  Expect(client(), Type::kEstablished);
  // The one that talked nonsense was hung up on.
  char byte;
  EXPECT_LE(recv(strangers[1].get(), &byte, 1, MSG_DONTWAIT), 0);
  EXPECT_NE(errno, EAGAIN);
}

// A server that does not speak the set-up's language.
TEST_P(HardwareDeviceTest, AServerOfAnotherKindIsToldFromASilentOne) {
  if (!WithTcp()) GTEST_SKIP() << "rdma_cm's port is no TCP port";
  SocketAddress address = ServerAddress();
  const UniqueFd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(0, bind(fd.get(), address.get(), address.length()));
  ASSERT_EQ(0, listen(fd.get(), 1));
  socklen_t length = sizeof(address.storage);
  ASSERT_EQ(0,
            getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address.storage),
                        &length));
  ASSERT_NE(StartConnecting(address), nullptr);
  pump().Turn();
  const UniqueFd answering(accept(fd.get(), nullptr, nullptr));
  const std::string words =
      "HTTP/1.1 400 Bad Request\r\n" + std::string(300, ' ');
  ASSERT_EQ(static_cast<ssize_t>(words.size()),
            send(answering.get(), words.data(), words.size(), MSG_NOSIGNAL));
  const CmEvent failed = Expect(client(), Type::kConnectFailed);
  EXPECT_FALSE(failed.rejected);
  EXPECT_EQ(failed.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.status.message()),
              HasSubstr("no connection set-up message"));
}

}  // namespace
}  // namespace rdma::conformance
