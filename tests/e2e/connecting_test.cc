// Goal: whatever is wrong with the other side of a new connection ends in a
// status that says so, on the right side, within the deadline; and a server
// serves on whatever comes in.
// Method: addresses with nobody, with somebody else, and with a listener of
// another version that is played through the connection manager itself.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/handshake.h"
#include "rdma_transport/hardware/hardware_provider.h"
#include "rdma_transport/provider/provider.h"
#include "rdma_transport/software/software_provider.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"

namespace e2e {
namespace {

using rdma::CmEvent;

bool Says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

std::unique_ptr<rdma::Provider> MakeProvider() {
  return TheDeviceUnderTest().software ? rdma::MakeSoftwareProvider()
                                       : rdma::MakeHardwareProvider();
}

// For a provider, which knows devices by their own names.
std::string DeviceNamed(const std::string& argument) {
  return argument == "soft" ? "soft0" : argument;
}

rdma::SocketAddress ServerAddress(int port) {
  return *rdma::SocketAddress::FromNumeric(TheDeviceUnderTest().server_address,
                                           static_cast<uint16_t>(port));
}

// The verbs side of a peer that does not speak as it should.
class RawPeer {
 public:
  explicit RawPeer(const std::string& device)
      : provider_(MakeProvider()),
        device_(*provider_->Open(device, {})),
        cm_(*device_->CreateConnectionManager()),
        pd_(device_->AllocPd()),
        cq_(device_->CreateCq(16, nullptr, nullptr, 0)) {
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq_;
    init.cap = {.max_send_wr = 8,
                .max_recv_wr = 8,
                .max_send_sge = 1,
                .max_recv_sge = 1};
    init.qp_type = IBV_QPT_RC;
    qp_ = device_->CreateQp(pd_, &init);
  }
  ~RawPeer() {
    device_->DestroyQp(qp_);
    cm_.reset();
    device_->DestroyCq(cq_);
    device_->DeallocPd(pd_);
  }

  rdma::ConnectionManager& cm() { return *cm_; }
  ibv_qp* qp() { return qp_; }

  // The next event; none within `timeout`: nothing.
  std::optional<CmEvent> NextEvent(absl::Duration timeout) {
    const absl::Time deadline = absl::Now() + timeout;
    while (absl::Now() < deadline) {
      if (std::optional<CmEvent> event = cm_->GetEvent()) return event;
      pollfd ready = {.fd = cm_->fd(), .events = POLLIN};
      ::poll(&ready, 1, 10);
    }
    return std::nullopt;
  }

 private:
  const std::unique_ptr<rdma::Provider> provider_;
  const std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<rdma::ConnectionManager> cm_;
  ibv_pd* const pd_;
  ibv_cq* const cq_;
  ibv_qp* qp_ = nullptr;
};

// Listens, and answers connect requests with `answer` until it goes.
class RawListener {
 public:
  using Answer = std::function<void(RawPeer& peer, CmEvent& request)>;

  explicit RawListener(Answer answer) : answer_(std::move(answer)) {
    absl::StatusOr<rdma::CmId*> id =
        peer_.cm().Listen(ServerAddress(0), 16, nullptr);
    port_ = (*id)->local_address().port();
    thread_ = std::thread([this] { Run(); });
  }
  ~RawListener() {
    stop_ = true;
    thread_.join();
  }

  std::string address() const { return ServerUri(port_); }

 private:
  void Run() {
    while (!stop_) {
      std::optional<CmEvent> event = peer_.NextEvent(absl::Milliseconds(20));
      if (event.has_value() && event->type == CmEvent::Type::kConnectRequest) {
        answer_(peer_, *event);
      }
    }
  }

  RawPeer peer_{DeviceNamed(TheDeviceUnderTest().server_device)};
  const Answer answer_;
  int port_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

rdma::ConnectionParameters WithPrivateData(std::string private_data) {
  rdma::ConnectionParameters parameters;
  parameters.private_data = std::move(private_data);
  return parameters;
}

// A handshake that is right but for its version.
std::string HandshakeOfVersion(uint16_t version) {
  rdma::Handshake handshake;
  handshake.version = version;
  handshake.receive_buffer_bytes = 10240;
  handshake.initial_credits = 8;
  handshake.max_calls = 1024;
  return rdma::EncodeHandshake(handshake);
}

// Connects to `port` with `private_data`, and returns how that ended.
CmEvent ConnectRaw(int port, const std::string& private_data) {
  RawPeer peer(DeviceNamed(TheDeviceUnderTest().client_device));
  const absl::StatusOr<rdma::CmId*> id = peer.cm().Connect(
      ServerAddress(port), peer.qp(), WithPrivateData(private_data),
      absl::Seconds(10), nullptr);
  EXPECT_TRUE(id.ok()) << id.status();
  std::optional<CmEvent> event = peer.NextEvent(absl::Seconds(20));
  EXPECT_TRUE(event.has_value());
  return event.value_or(CmEvent());
}

TEST(ConnectingTest, NobodyListens) {
  const Client client(ServerUri(1));
  const rpc::Status status = client.Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(
      Says(status.error_message(), TheDeviceUnderTest().server_address + ":1"))
      << status;
  EXPECT_TRUE(Says(status.error_message(), "nothing listens")) << status;
}

TEST(ConnectingTest, TheWrongPortNamesTheRightAddress) {
  const Server server;
  const std::string wrong =
      absl::StrCat(TheDeviceUnderTest().server_address, ":", server.port() - 1);
  const rpc::Status status = Client("rdma://" + wrong).Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(Says(status.error_message(), wrong)) << status;
}

TEST(ConnectingTest, AnAddressThatCannotBeReachedSaysWhatToDo) {
  const rpc::Status status = Client("rdma://192.0.2.1:50051").Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(Says(status.error_message(), "192.0.2.1")) << status;
  EXPECT_TRUE(Says(status.error_message(), TheDeviceUnderTest().software
                                               ? "this host"
                                               : "see `ip route`"))
      << status;
}

TEST(ConnectingTest, ANameThatDoesNotResolve) {
  const rpc::Status status =
      Client("rdma://no-such-host.invalid:50051").Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(Says(status.error_message(), "no-such-host.invalid")) << status;
}

TEST(ConnectingTest, ANameThatResolves) {
  const std::string& name = TheDeviceUnderTest().server_name;
  if (name.empty()) GTEST_SKIP() << "no name has the device's address";
  const Server server({}, absl::StrCat("rdma://", name, ":0"));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_OK(Client(absl::StrCat("rdma://", name, ":", server.port())).Echo(10));
}

TEST(ConnectingTest, WaitForReadyEndsAtTheDeadline) {
  const Client client(ServerUri(1), QuickReconnect());
  rpc::ClientContext context;
  context.set_wait_for_ready(true);
  const absl::Time start = absl::Now();
  context.set_deadline(start + absl::Milliseconds(300));
  Blob response;
  EXPECT_TRUE(HasCode(client.stub().Echo(&context, Blob(), &response),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(299));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(ConnectingTest, APortInUseIsRefusedAndTheFirstServerServesOn) {
  const PeerProcess first = PeerProcess::Serve();
  ASSERT_TRUE(first.ok()) << first.address();
  const Server second({}, first.address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists)
      << second.status();
  EXPECT_TRUE(Says(std::string(second.status().message()),
                   first.address().substr(std::strlen("rdma://"))))
      << second.status();
  // Also for the wildcard, which includes it.
  const std::string port = first.address().substr(first.address().rfind(':'));
  EXPECT_EQ(Server({}, "rdma://0.0.0.0" + port).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_OK(Client(first.address()).Echo(1000));
}

TEST(ConnectingTest, AServerOfAnotherVersionIsNamed) {
  const RawListener listener([](RawPeer& peer, CmEvent& request) {
    EXPECT_TRUE(peer.cm()
                    .Accept(request.id, peer.qp(),
                            WithPrivateData(HandshakeOfVersion(4711)))
                    .ok());
  });
  const rpc::Status status = Client(listener.address()).Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(Says(status.error_message(), "version 4711")) << status;
  EXPECT_TRUE(Says(status.error_message(),
                   absl::StrCat("version ", rdma::kProtocolVersion)))
      << status;
}

TEST(ConnectingTest, AServerThatSpeaksSomethingElse) {
  const RawListener listener([](RawPeer& peer, CmEvent& request) {
    EXPECT_TRUE(peer.cm()
                    .Accept(request.id, peer.qp(),
                            WithPrivateData("HTTP/1.1 400 Bad Request"))
                    .ok());
  });
  const rpc::Status status = Client(listener.address()).Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(Says(status.error_message(), "protocol")) << status;
}

TEST(ConnectingTest, AServersReasonToRefuseReachesTheCaller) {
  const RawListener listener([](RawPeer& peer, CmEvent& request) {
    EXPECT_TRUE(peer.cm().Reject(request.id, "closed on Sundays").ok());
    peer.cm().Destroy(request.id);
  });
  const rpc::Status status = Client(listener.address()).Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(Says(status.error_message(), "closed on Sundays")) << status;
}

TEST(ConnectingTest, AServerThatNeverAnswersMeetsTheDeadline) {
  const RawListener listener([](RawPeer&, CmEvent&) {});
  const Client client(listener.address());
  const absl::Time start = absl::Now();
  EXPECT_TRUE(HasCode(client.Echo(10, 0, absl::Milliseconds(500)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(ConnectingTest, AServerThatNeverAnswersMeetsTheConnectTimeout) {
  const RawListener listener([](RawPeer&, CmEvent&) {});
  const Client client(listener.address(),
                      {{"verbena.connect_timeout_ms", 300}});
  const absl::Time start = absl::Now();
  const rpc::Status status = client.Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST(ConnectingTest, AClientOfAnotherVersionIsToldSo) {
  const Server server;
  const CmEvent event = ConnectRaw(server.port(), HandshakeOfVersion(4711));
  EXPECT_EQ(event.type, CmEvent::Type::kConnectFailed);
  EXPECT_TRUE(event.rejected);
  EXPECT_TRUE(Says(event.private_data, "4711")) << event.private_data;
  EXPECT_OK(Client(server.address()).Echo(10));
}

TEST(ConnectingTest, AGarbageHandshakeIsRefusedAndTheServerServesOn) {
  const Server server;
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    // Half of them begin well.
    std::string data = i % 2 == 0 ? std::string("VRBN\1\0", 6) : "";
    const size_t bytes = data.size() + random() % (56 - data.size());
    while (data.size() < bytes) data.push_back(static_cast<char>(random()));
    const CmEvent event = ConnectRaw(server.port(), data);
    // What is right by chance may be accepted.
    if (event.type == CmEvent::Type::kConnectFailed) {
      EXPECT_TRUE(event.rejected) << event.status;
      EXPECT_NE(event.private_data, "");
    }
  }
  EXPECT_OK(Client(server.address()).Echo(10));
}

// Sends `bytes` to the socket that the software device listens with.
void SendToListener(int port, const std::string& bytes) {
  sockaddr_un address = {.sun_family = AF_UNIX};
  const std::string name =
      absl::StrCat("verbena/soft0/127.0.0.1:", port);  // in the abstract space
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address),
                      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                             1 + name.size())),
            0)
      << std::strerror(errno);
  ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::close(fd);
}

TEST(ConnectingTest, GarbageToTheListeningSocketHarmsNobody) {
  if (!TheDeviceUnderTest().software) {
    GTEST_SKIP() << "the software device listens with a socket, rdma_cm with "
                    "none";
  }
  const Server server;
  const Client before(server.address());
  EXPECT_OK(before.Echo(10));
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random() % 2000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    SendToListener(server.port(), bytes);
  }
  EXPECT_OK(before.Echo(10));
  EXPECT_OK(Client(server.address(), QuickReconnect()).Echo(10));
}

TEST(ConnectingTest, MoreConnectionsThanAllowedAreToldTheLimit) {
  const Server server({{"verbena.max_connections", 3}});
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    // Another option, another connection.
    clients.push_back(std::make_unique<Client>(
        server.address(),
        Arguments{{"grpc.client_idle_timeout_ms", 1'000'000 + i}}));
    EXPECT_OK(clients.back()->Echo(10));
  }
  const rpc::Status status =
      Client(server.address(), QuickReconnect()).Echo(10);
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::UNAVAILABLE));
  EXPECT_TRUE(Says(status.error_message(), "3")) << status;
  for (const auto& client : clients) EXPECT_OK(client->Echo(10));
}

}  // namespace
}  // namespace e2e
