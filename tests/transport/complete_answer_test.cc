// Goal: what a client was sent before its connection broke arrives, also where
// it waits for a callback of the call; and only an answer that is complete
// counts as one.
// Method: two sides over the software device; a callback of the client's blocks
// while the server answers and closes.
#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/call.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::Side;

class CompleteAnswerTest : public ::testing::Test {
 protected:
  CompleteAnswerTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
    client_.BlockHandlers(&go_on_);
    client_.Open(client_.ConnectTo(server_));
    EXPECT_TRUE(Eventually([&] { return server_.opened() == 1; }));
    SendFrame();
    EXPECT_TRUE(Eventually([&] { return client_.frames() == 1; }));
  }

  void SendFrame() {
    rpc::CallHandle handle;
    server_.Do([&] {
      server_.poller().calls().ForEach(
          [&](Call& call) { handle = call.handle; });
    });
    server_.SendMore(handle, 1);
  }
  // Of the client's call, which must not be over.
  bool HoldsFrame(bool last) {
    bool holds = false;
    client_.Do([&] {
      client_.poller().calls().ForEach([&](Call& call) {
        holds = !call.inbox.empty() && call.received_end == last;
      });
    });
    return holds;
  }
  void BreakAndGoOn() {
    client_.CloseAll(absl::UnavailableError("by the test"));
    go_on_.Notify();
    EXPECT_TRUE(
        Eventually([&] { return client_.answered() + client_.failed() == 1; }));
  }

  absl::Notification go_on_;
  Side server_;
  Side client_;
};

TEST_F(CompleteAnswerTest, ArrivesAfterTheConnectionBroke) {
  SendFrame();
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return HoldsFrame(/*last=*/true); }));
  BreakAndGoOn();
  EXPECT_EQ(client_.answered(), 1);
  EXPECT_EQ(client_.frames(), 3);
}

TEST_F(CompleteAnswerTest, WithoutItsEndItIsNone) {
  SendFrame();
  EXPECT_TRUE(Eventually([&] { return HoldsFrame(/*last=*/false); }));
  BreakAndGoOn();
  EXPECT_EQ(client_.failed(), 1);
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kUnavailable);
}

// What a receive buffer goes back to is not asked of the connection then: the
// address sanitizer sees it.
TEST(OnlyMessageTest, TheConnectionMayGoWhileItIsTaken) {
  absl::Notification go_on;
  Side server;
  Side client;
  server.Listen();
  client.TakeOnlyMessages();
  client.BlockHandlers(&go_on);
  client.Open(client.ConnectTo(server));
  EXPECT_TRUE(Eventually([&] { return client.frames() == 1; }));
  client.CloseAll(absl::UnavailableError("by the test"));
  EXPECT_TRUE(Eventually([&] {
    uint32_t left = 1;
    client.Do([&] { left = client.poller().connection_count(); });
    return left == 0;
  }));
  // Who drives meanwhile deletes it and goes to sleep.
  absl::SleepFor(absl::Milliseconds(100));
  go_on.Notify();
  EXPECT_TRUE(Eventually([&] { return client.answered() == 1; }));
}

}  // namespace
}  // namespace rdma
