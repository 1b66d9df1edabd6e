// Goal: whatever comes to a listener instead of a handshake costs its own
// connection only: the server serves on, leaks nothing, and says to the peer
// what is wrong where the peer can read it. Method: clients that speak the
// protocol by hand and break it in one place each; after each, a good client
// connects.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/software/endpoint.h"
#include "tests/software/hostile_client.h"

namespace rdma::soft {
namespace {

class HostileHandshakeTest : public testing::Test {
 protected:
  void SetUp() override {
    address_ = server_.Listen();
    ExpectService();  // maps what is mapped once
    descriptors_ = CountDescriptors();
    mappings_ = CountMappings();
  }
  void TearDown() override {
    ExpectService();
    EXPECT_EQ(CountDescriptors(), descriptors_) << "a descriptor leaked";
    EXPECT_EQ(CountMappings(), mappings_) << "a mapping leaked";
  }

  void Turn() {
    while (auto event = server_.manager().GetEvent()) {
      EXPECT_NE(event->type, CmEvent::Type::kConnectRequest);
    }
  }

  // A good client is served.
  void ExpectService() {
    Endpoint client;
    ibv_qp* const near = client.Connect(address_);
    ibv_qp* const far = server_.Accept();
    ASSERT_NE(far, nullptr);
    ASSERT_TRUE(client.Await(CmEvent::Type::kEstablished));
    ASSERT_EQ(server_.PostReceive(far, 1, server_.Sge(0, 100)), 0);
    ASSERT_EQ(client.PostSend(near, 2, client.Sge(0, 10)), 0);
    EXPECT_EQ(server_.AwaitCompletion()->status, IBV_WC_SUCCESS);
    EXPECT_EQ(client.AwaitCompletion()->status, IBV_WC_SUCCESS);
    client.DestroyQp(near);
    const auto gone = server_.Await(CmEvent::Type::kDisconnected);
    ASSERT_TRUE(gone);
    server_.DestroyQp(far);
    server_.manager().Destroy(gone->id);
  }

  void ExpectHungUp(HostileClient& client) {
    EXPECT_EQ(client.AwaitAnswer([this] { Turn(); }), nullptr);
  }

  std::string ExpectRejected(HostileClient& client) {
    const auto answer = client.AwaitAnswer([this] { Turn(); });
    if (answer == nullptr) {
      ADD_FAILURE() << "hung up without a word";
      return "";
    }
    const auto rejection = DecodeRejection(*answer);
    EXPECT_TRUE(rejection.ok()) << rejection.status();
    ExpectHungUp(client);
    return rejection.ok() ? rejection->reason : "";
  }

  Endpoint server_;
  SocketAddress address_;
  int descriptors_ = 0;
  int mappings_ = 0;
};

TEST_F(HostileHandshakeTest, Garbage) {
  for (size_t bytes : {size_t{1}, size_t{7}, size_t{8}, size_t{64},
                       size_t{1000}, size_t{5000}}) {
    HostileClient client(address_);
    const std::string garbage(bytes, 'G');
    client.Send(garbage.data(), garbage.size());
    ExpectHungUp(client);
  }
}

TEST_F(HostileHandshakeTest, EveryPrefixOfAHello) {
  const EncodedHandshake hello =
      EncodeSetup(HandshakeKind::kHello, HostileClient(address_).GoodSetup());
  for (size_t bytes = 1; bytes < hello.bytes; bytes += 13) {
    HostileClient client(address_);
    client.Send(hello.data, bytes, {client.device_fd(), client.link_fd()});
    ExpectHungUp(client);
  }
}

TEST_F(HostileHandshakeTest, AnotherVersionIsToldBothVersions) {
  HostileClient client(address_);
  EncodedHandshake hello =
      EncodeSetup(HandshakeKind::kHello, client.GoodSetup());
  const uint16_t version = 9;
  std::memcpy(hello.data + 4, &version, sizeof(version));
  client.Send(hello.data, hello.bytes, {client.device_fd(), client.link_fd()});
  const std::string reason = ExpectRejected(client);
  EXPECT_NE(reason.find("this side speaks soft-device protocol 2, the peer 9"),
            std::string::npos)
      << reason;
}

TEST_F(HostileHandshakeTest, AnAnswerInsteadOfAHello) {
  for (HandshakeKind kind : {HandshakeKind::kAccept, HandshakeKind::kReject}) {
    HostileClient client(address_);
    const EncodedHandshake answer = EncodeSetup(kind, client.GoodSetup());
    client.Send(answer.data, answer.bytes,
                {client.device_fd(), client.link_fd()});
    ExpectHungUp(client);
  }
}

TEST_F(HostileHandshakeTest, DescriptorsThatAreNotThoseOfAHello) {
  const UniqueFd event(eventfd(0, EFD_CLOEXEC));
  const UniqueFd unsealed(memfd_create("bad", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kDeviceSegmentBytes), 0);
  const UniqueFd file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto small =
      Segment::Create("small", 4096, Sharing::kReadOnlyToPeers, Prefault::kNo);
  const auto large = Segment::Create("large", 2 * kDeviceSegmentBytes,
                                     Sharing::kReadOnlyToPeers, Prefault::kNo);
  ASSERT_TRUE(small.ok() && large.ok());
  for (int bad :
       {event.get(), unsealed.get(), file.get(), small->fd(), large->fd()}) {
    for (bool first : {true, false}) {
      HostileClient client(address_);
      const EncodedHandshake hello =
          EncodeSetup(HandshakeKind::kHello, client.GoodSetup());
      client.Send(
          hello.data, hello.bytes,
          {first ? bad : client.device_fd(), first ? client.link_fd() : bad});
      ExpectHungUp(client);
    }
  }
}

TEST_F(HostileHandshakeTest, TooFewDescriptors) {
  HostileClient none(address_);
  const EncodedHandshake hello =
      EncodeSetup(HandshakeKind::kHello, none.GoodSetup());
  none.Send(hello.data, hello.bytes);
  ExpectHungUp(none);
  HostileClient one(address_);
  one.Send(hello.data, hello.bytes, {one.device_fd()});
  ExpectHungUp(one);
}

TEST_F(HostileHandshakeTest, ARingThatDoesNotFitItsMemory) {
  HostileClient client(address_);
  HandshakeSetup setup = client.GoodSetup();
  setup.ring_lines = 256;
  client.SendHello(setup);
  ExpectHungUp(client);
}

TEST_F(HostileHandshakeTest, FieldsOutOfRange) {
  const auto broken = [](auto change) {
    return [change](HandshakeSetup setup) {
      change(&setup);
      return setup;
    };
  };
  const std::vector<std::function<HandshakeSetup(HandshakeSetup)>> changes = {
      broken([](auto* s) { s->ring_lines = 0; }),
      broken([](auto* s) { s->ring_lines = 63; }),
      broken([](auto* s) { s->ring_lines = 1u << 31; }),
      broken([](auto* s) { s->send_cq_line = kMaxCompletionQueues; }),
      broken([](auto* s) { s->recv_cq_line = ~0u; }),
      broken([](auto* s) { s->rnr_retry_count = 8; }),
      broken([](auto* s) { s->initiator_depth = 255; }),
  };
  for (const auto& change : changes) {
    HostileClient client(address_);
    client.SendHello(change(client.GoodSetup()));
    ExpectHungUp(client);
  }
}

TEST_F(HostileHandshakeTest, SilenceIsEvictedByNewcomers) {
  std::vector<std::unique_ptr<HostileClient>> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(std::make_unique<HostileClient>(address_));
    Turn();
  }
  // The first ones had to go; the good client gets its turn at once.
  ExpectHungUp(*silent.front());
  ExpectService();
  silent.clear();
  Turn();
}

TEST_F(HostileHandshakeTest, SilenceEndsByItself) {
  HostileClient client(address_);
  // The server's limit is 5 s.
  ExpectHungUp(client);
}

TEST_F(HostileHandshakeTest, LeavingBeforeTheAnswer) {
  {
    HostileClient client(address_);
    client.SendHello(client.GoodSetup());
  }
  const auto request = server_.Await(CmEvent::Type::kConnectRequest);
  ASSERT_TRUE(request);
  ibv_qp* const qp = server_.CreateQp();
  EXPECT_EQ(server_.manager().Accept(request->id, qp, {}).code(),
            absl::StatusCode::kUnavailable);
  server_.DestroyQp(qp);
  server_.manager().Destroy(request->id);
}

// A server as the client meets it: one that answers with something else.
TEST(HostileServerTest, NonsenseForAnAnswerFailsTheConnection) {
  Endpoint client;
  uint16_t port = 0;
  // A listener's name, taken by hand.
  for (const std::string& answer :
       {std::string("nonsense"), std::string(500, '\0'), std::string(1, 'x')}) {
    const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const UniqueFd owner(listener);
    port = static_cast<uint16_t>(20000 + getpid() % 10000);
    const std::string name =
        std::string("verbena/soft0/127.0.0.1:") + std::to_string(port);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                          name.size())),
              0);
    ASSERT_EQ(listen(listener, 1), 0);
    ibv_qp* const qp =
        client.Connect(*SocketAddress::FromNumeric("127.0.0.1", port));
    const UniqueFd accepted(accept(listener, nullptr, nullptr));
    ASSERT_EQ(send(accepted.get(), answer.data(), answer.size(), 0),
              static_cast<ssize_t>(answer.size()));
    const auto event = client.Await(CmEvent::Type::kConnectFailed);
    ASSERT_TRUE(event);
    EXPECT_FALSE(event->rejected);
    EXPECT_FALSE(event->status.ok());
    client.DestroyQp(qp);
    client.manager().Destroy(event->id);
  }
}

}  // namespace
}  // namespace rdma::soft
