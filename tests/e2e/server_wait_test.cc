// Goal: a thread that has nothing else to do drives a server, so that calls
// come in on it; and it is let go when its event is set, whoever sets it, and
// when the server shuts down.
// Method: a transport without rpc/ above it, whose calls say on which thread
// they came.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/receipts.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr int kCalls = 200;

// A thread that waits for an event of the server's.
class Guest {
 public:
  explicit Guest(ReceiptServer* server)
      : thread_([this, server] {
          server->transport().Wait(event_);
          left_ = true;
        }) {}
  ~Guest() { thread_.join(); }

  std::thread::id id() const { return thread_.get_id(); }
  void SetEvent(ReceiptServer& server) {
    event_.Set();
    server.transport().WakeWaiters();
  }
  bool left() const { return left_; }

 private:
  rpc::Event event_;
  std::atomic<bool> left_{false};
  std::thread thread_;
};

TEST(ServerWaitTest, CallsComeInOnAThreadThatWaits) {
  ReceiptServer server;
  ReceiptClient client(server.address());
  EXPECT_TRUE(client.Call().status.ok());
  Guest guest(&server);
  // The thread that drove before gives way.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(client.Call().status.ok());
    return server.last_thread() == guest.id();
  }));
  // But while it gets no CPU: another thread takes over then, for some calls.
  EXPECT_TRUE(Eventually([&] {
    int on_guest = 0;
    for (int i = 0; i < kCalls; ++i) {
      EXPECT_TRUE(client.Call().status.ok());
      on_guest += server.last_thread() == guest.id();
    }
    return on_guest > kCalls * 9 / 10;
  }));
  EXPECT_FALSE(guest.left());
  guest.SetEvent(server);
  EXPECT_TRUE(Eventually([&] { return guest.left(); }));
  // Without it, too.
  EXPECT_TRUE(client.Call().status.ok());
}

TEST(ServerWaitTest, EachOfManyThreadsIsLetGoByItsEvent) {
  ReceiptServer server;
  ReceiptClient client(server.address());
  std::vector<std::unique_ptr<Guest>> guests;
  for (int i = 0; i < 8; ++i)
    guests.push_back(std::make_unique<Guest>(&server));
  for (const auto& guest : guests) {
    EXPECT_TRUE(client.Call().status.ok());
    EXPECT_FALSE(guest->left());
    guest->SetEvent(server);
    EXPECT_TRUE(Eventually([&] { return guest->left(); }));
  }
  EXPECT_TRUE(client.Call().status.ok());
}

TEST(ServerWaitTest, OneThatComesAndGoesLeavesNoCallBehind) {
  ReceiptServer server;
  ReceiptClient client(server.address());
  std::atomic<bool> over{false};
  std::thread visitor([&] {
    while (!over) {
      Guest guest(&server);
      absl::SleepFor(absl::Microseconds(100));
      guest.SetEvent(server);
    }
  });
  for (int i = 0; i < kCalls; ++i) EXPECT_TRUE(client.Call().status.ok());
  over = true;
  visitor.join();
}

TEST(ServerWaitTest, AShutdownLetsAllGo) {
  ReceiptServer server;
  ReceiptClient client(server.address());
  EXPECT_TRUE(client.Call().status.ok());
  std::vector<std::unique_ptr<Guest>> guests;
  for (int i = 0; i < 4; ++i)
    guests.push_back(std::make_unique<Guest>(&server));
  EXPECT_TRUE(client.Call().status.ok());
  server.Shutdown(absl::InfinitePast());
  guests.push_back(std::make_unique<Guest>(&server));  // later ones as well
  for (const auto& guest : guests) {
    EXPECT_TRUE(Eventually([&] { return guest->left(); }));
  }
}

}  // namespace
}  // namespace e2e
