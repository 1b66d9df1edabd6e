// Goal: a client shows its memory to servers of its own user alone, unless it
// was told otherwise. Method: a process of another user takes the name of a
// server and listens; it needs root to make one.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tests/software/endpoint.h"

namespace rdma::soft {
namespace {

constexpr uid_t kNobody = 65534;
constexpr char kAddress[] = "127.0.0.1";
// HostileServerTest, whose one port has to be free, has those from 20'000 on.
constexpr uint16_t kFirstPort = 10'000;

// What the process of the other user says to the test: its port, then a byte
// for each client.
constexpr char kGotNothing = 'n';
constexpr char kGotAMessage = 'm';

// Listens as kNobody, takes one client, and says whether it sent anything.
[[noreturn]] void ListenAsNobody(int report) {
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (setuid(kNobody) != 0) _exit(1);
  // The first name that no other test has.
  uint16_t port = kFirstPort;
  for (;; ++port) {
    const std::string name =
        std::string("verbena/soft0/") + kAddress + ":" + std::to_string(port);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    if (bind(listener, reinterpret_cast<sockaddr*>(&address),
             offsetof(sockaddr_un, sun_path) + 1 + name.size()) == 0) {
      break;
    }
    if (errno != EADDRINUSE || port == UINT16_MAX) _exit(1);
  }
  if (listen(listener, 8) != 0) _exit(1);
  if (write(report, &port, sizeof(port)) != sizeof(port)) _exit(1);
  for (;;) {
    const int client = accept(listener, nullptr, nullptr);
    char bytes[1024];
    const bool got = recv(client, bytes, sizeof(bytes), 0) > 0;
    if (write(report, got ? &kGotAMessage : &kGotNothing, 1) != 1) _exit(1);
    close(client);
  }
}

class OtherUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only root can make a process of another user";
    }
    int fds[2];
    ASSERT_EQ(pipe(fds), 0);
    // Before a device is opened: it is of no use in a child.
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) ListenAsNobody(fds[1]);
    close(fds[1]);
    report_ = fds[0];
    ASSERT_EQ(read(report_, &port_, sizeof(port_)),
              static_cast<ssize_t>(sizeof(port_)));
  }
  void TearDown() override {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(report_);
  }

  char Heard() {
    char byte = 0;
    return read(report_, &byte, 1) == 1 ? byte : 0;
  }

  SocketAddress Address() const {
    return *SocketAddress::FromNumeric(kAddress, port_);
  }

  pid_t child_ = -1;
  int report_ = -1;
  uint16_t port_ = 0;
};

TEST_F(OtherUserTest, AServerOfAnotherUserIsShownNothing) {
  Endpoint client;
  client.Connect(Address());
  const auto event = client.Await(CmEvent::Type::kConnectFailed);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->status.code(), absl::StatusCode::kPermissionDenied)
      << event->status;
  EXPECT_NE(event->status.message().find(std::to_string(kNobody)),
            std::string::npos)
      << event->status;
  EXPECT_EQ(Heard(), kGotNothing);
}

TEST_F(OtherUserTest, UnlessTheClientAllowsIt) {
  Endpoint client({.single_threaded_queues = true, .allow_other_users = true});
  client.Connect(Address());
  EXPECT_EQ(Heard(), kGotAMessage);
}

}  // namespace
}  // namespace rdma::soft
