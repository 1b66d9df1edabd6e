// Goal: a stream that is not read holds back its own sender, and nothing else.
// Method: as connection_test.
#include <cstddef>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::AnotherCallIsAnswered;
using testing::Eventually;
using testing::Side;

// What 64 KiB of window let through after an open of 1 byte: it may be
// exceeded by one frame.
constexpr int kFramesOf10000 = 7;

class StreamTest : public ::testing::Test {
 protected:
  StreamTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
    connection_ = client_.ConnectTo(server_);
    stream_ = client_.Open(connection_, 1, "/test.Test/Method", 0,
                           /*end=*/false);
    EXPECT_TRUE(Eventually([&] { return server_.opened() == 1; }));
  }

  void SendMany(int count, size_t bytes) {
    for (int i = 0; i < count; ++i) client_.SendMore(stream_, bytes);
  }
  size_t received() const { return server_.message_sizes().size(); }
  bool EventuallyReceived(size_t count) {
    return Eventually([&] { return received() >= count; });
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
  rpc::CallHandle stream_;
};

TEST_F(StreamTest, OneThatIsNotReadHoldsBackItsSenderAlone) {
  SendMany(100, 10'000);
  EXPECT_TRUE(EventuallyReceived(1 + kFramesOf10000));
  EXPECT_TRUE(Eventually([&] { return client_.sent() >= 1 + kFramesOf10000; }));
  EXPECT_TRUE(AnotherCallIsAnswered(client_, connection_, server_));
  EXPECT_EQ(received(), 1 + kFramesOf10000 + 1u);
  EXPECT_EQ(client_.sent(), 1 + kFramesOf10000);

  server_.TakeFrames(true);
  EXPECT_TRUE(EventuallyReceived(1 + 100 + 1));
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 1 + 100; }));
  EXPECT_EQ(client_.failed() + client_.down(), 0);
}

TEST_F(StreamTest, OneWhoseHandlerBlocksPilesUpNoMoreThanItsWindow) {
  absl::Notification go_on;
  server_.BlockHandlers(&go_on);
  const rpc::CallHandle blocked =
      client_.Open(connection_, 1, "/test.Test/Method", 0, /*end=*/false);
  EXPECT_TRUE(Eventually([&] { return server_.opened() == 2; }));
  server_.BlockHandlers(nullptr);
  for (int i = 0; i < 100; ++i) client_.SendMore(blocked, 10'000);
  constexpr int kSent = 1 + 1 + kFramesOf10000;
  EXPECT_TRUE(Eventually([&] { return client_.sent() >= kSent; }));
  EXPECT_TRUE(AnotherCallIsAnswered(client_, connection_, server_));
  EXPECT_EQ(client_.sent(), kSent);
  go_on.Notify();
  server_.TakeFrames(true);
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 1 + 1 + 100; }));
}

// What is due to a call whose callback blocks is given to it in order.
TEST_F(StreamTest, WhatWasSentIsToldBeforeTheEnd) {
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 1; }));
  absl::Notification go_on;
  client_.BlockHandlers(&go_on);
  const rpc::CallHandle blocked =
      client_.Open(connection_, 1, "/test.Test/Method", 0, /*end=*/false);
  client_.SendMore(blocked, 1);
  EXPECT_TRUE(EventuallyReceived(3));
  client_.BlockHandlers(nullptr);
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
  EXPECT_TRUE(AnotherCallIsAnswered(client_, connection_, server_));
  EXPECT_EQ(client_.sent(), 1);
  go_on.Notify();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 3; }));
  EXPECT_EQ(client_.sent(), 3);
}

TEST_F(StreamTest, LargeMessagesCountAsWell) {
  SendMany(5, 1 << 20);
  EXPECT_TRUE(EventuallyReceived(2));
  EXPECT_TRUE(AnotherCallIsAnswered(client_, connection_, server_));
  EXPECT_EQ(received(), 3u);
  server_.TakeFrames(true);
  EXPECT_TRUE(EventuallyReceived(1 + 5 + 1));
}

TEST_F(StreamTest, WhatWasHeldBackGoesInOrderAndTheEndLast) {
  std::vector<size_t> sizes = {1};
  for (size_t i = 0; i < 40; ++i) {
    sizes.push_back(i % 8 == 7 ? 100'000 + i : 5'000 + i);
    client_.SendMore(stream_, sizes.back());
  }
  sizes.push_back(3);
  client_.SendMore(stream_, 3, /*end=*/true);
  client_.SendMore(stream_, 4);  // after the end: nothing
  server_.TakeFrames(true);
  EXPECT_TRUE(EventuallyReceived(sizes.size()));
  EXPECT_EQ(server_.message_sizes(), sizes);
  EXPECT_TRUE(Eventually([&] { return client_.sent() == 41; }));
  server_.Answer();
  EXPECT_TRUE(Eventually([&] { return client_.answered() == 1; }));
}

TEST_F(StreamTest, TheWindowOfAFastReaderGrowsAsFarAsItMay) {
  server_.TakeFrames(true);
  const auto grown = [&] {
    client_.Do([&] { SendMany(1'000, 10'000); });
    return server_.window_size() == 4 << 20;
  };
  EXPECT_TRUE(Eventually(grown)) << server_.window_size();
  EXPECT_EQ(client_.failed() + client_.down(), 0);
}

TEST_F(StreamTest, APeerThatGoesBeyondTheWindowLosesTheCallAlone) {
  client_.Do([&] {
    client_.poller().calls().Find(stream_)->send_window = int64_t{1} << 40;
  });
  SendMany(100, 10'000);
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
  EXPECT_EQ(client_.last_failure().code(), absl::StatusCode::kInternal)
      << client_.last_failure();
  EXPECT_TRUE(AnotherCallIsAnswered(client_, connection_, server_));
  EXPECT_EQ(client_.down(), 0);
}

TEST_F(StreamTest, AConnectionThatClosesFreesWhatWasHeldBack) {
  SendMany(100, 10'000);
  client_.CloseAll(absl::UnavailableError("closed by the test"));
  EXPECT_TRUE(Eventually([&] { return client_.failed() == 1; }));
}

}  // namespace
}  // namespace rdma
