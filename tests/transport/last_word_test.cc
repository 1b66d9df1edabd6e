// Goal: a client whose server closes the connection knows which of its calls
// certainly did not run, however late it hears of it.
// Method: two sides over the software device; the server's driver is held up
// while calls come, and closes before it looks at them.
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::Side;

class LastWordTest : public ::testing::Test {
 protected:
  LastWordTest() {
    server_.Listen();
    connection_ = client_.ConnectTo(server_);
  }

  void CallAndBeAnswered(int calls) {
    for (int i = 1; i <= calls; ++i) {
      client_.Open(connection_);
      EXPECT_TRUE(Eventually([&] { return client_.answered() == i; }));
    }
  }
  // They come to a server that closes before it looks at them.
  void CallTooLate(int calls, bool end = true) {
    server_.Do([&] {
      for (int i = 0; i < calls; ++i) {
        client_.Open(connection_, 1, "/test.Test/Method", 0, end);
      }
      server_.CloseAllWhenFlushed();
    });
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
};

TEST_F(LastWordTest, CallsThatCameTooLateDidNotRun) {
  CallAndBeAnswered(10);
  CallTooLate(2);
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 2; }));
  EXPECT_EQ(client_.not_run(), 2);
  EXPECT_EQ(server_.opened(), 10);
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
}

TEST_F(LastWordTest, NorDidTheFirstOnes) {
  CallTooLate(2);
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 2; }));
  EXPECT_EQ(client_.not_run(), 2);
  EXPECT_EQ(server_.opened(), 0);
}

TEST_F(LastWordTest, NorDidStreamsAndThoseThatWaitForCredits) {
  CallAndBeAnswered(10);
  CallTooLate(500, /*end=*/false);
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 500; }));
  EXPECT_EQ(client_.not_run(), 500);
  EXPECT_EQ(server_.opened(), 10);
}

TEST_F(LastWordTest, ACallThatRunsIsAnotherThing) {
  server_.AnswerAtOnce(false);
  client_.Open(connection_);
  EXPECT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  CallTooLate(2);
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 3; }));
  EXPECT_EQ(client_.not_run(), 2);
}

}  // namespace
}  // namespace rdma
