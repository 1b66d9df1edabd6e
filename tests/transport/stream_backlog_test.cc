// Goal: what waits for one stream costs no more the longer it is, and is
// bounded by what its peer was told it may send.
// Method: two sides over the software device, without rpc/, whose handlers or
// drivers the test holds up. Times are compared with each other, never with a
// clock.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::Eventually;
using testing::Side;

constexpr char kPath[] = "/test.Test/Method";

class StreamBacklogTest : public ::testing::Test {
 protected:
  StreamBacklogTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
    const absl::StatusOr<Connection*> connection =
        client_.Connect(server_.address());
    EXPECT_TRUE(connection.ok()) << connection.status();
    connection_ = *connection;
    EXPECT_TRUE(Eventually([&] { return client_.up() == 1; }));
  }

  rpc::CallHandle OpenStream() {
    const int before = server_.opened();
    const rpc::CallHandle stream =
        client_.Open(connection_, 1, kPath, 0, /*end=*/false);
    EXPECT_TRUE(Eventually([&] { return server_.opened() == before + 1; }));
    return stream;
  }

  // All that was sent has arrived: what came later has been answered.
  void ExpectAnotherCallAnswered() {
    server_.AnswerAtOnce(true);
    const int before = client_.answered();
    client_.Open(connection_);
    EXPECT_TRUE(Eventually([&] { return client_.answered() == before + 1; }));
    server_.AnswerAtOnce(false);
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
};

// How long the frames of a stream take from when its handler returns, that many
// having come while it blocked.
class Backlog : public StreamBacklogTest {
 public:
  absl::Duration TimeToTake(int frames) {
    absl::Notification go_on;
    server_.BlockHandlers(&go_on);
    const rpc::CallHandle stream = OpenStream();
    server_.BlockHandlers(nullptr);
    constexpr int64_t kPlenty = int64_t{1} << 40;
    server_.Do([&] {
      server_.poller().calls().ForEach(
          [&](Call& call) { call.receive_window = kPlenty; });
    });
    client_.Do([&] {
      client_.poller().calls().Find(stream)->send_window = kPlenty;
      for (int i = 0; i < frames; ++i) client_.SendMore(stream, 1);
    });
    ExpectAnotherCallAnswered();
    const int before = server_.frames();
    const absl::Time start = absl::Now();
    go_on.Notify();
    EXPECT_TRUE(
        Eventually([&] { return server_.frames() >= before + 1 + frames; },
                   absl::Minutes(3)));
    return absl::Now() - start;
  }

 private:
  void TestBody() override {}
};

absl::Duration LeastTimeToTake(int frames) {
  absl::Duration least = absl::InfiniteDuration();
  for (int i = 0; i < 3; ++i)
    least = std::min(least, Backlog().TimeToTake(frames));
  return least;
}

TEST(BacklogTest, ALongOneIsTakenInLinearTime) {
  const absl::Duration few = LeastTimeToTake(20'000);
  const absl::Duration many = LeastTimeToTake(100'000);
  const double ratio = absl::FDivDuration(many, few);
  RecordProperty("ratio_times_100", static_cast<int>(100 * ratio));
  // Five times as many. Twenty-five times as long if each passed all others.
  EXPECT_LT(ratio, 12) << absl::FormatDuration(few) << " and "
                       << absl::FormatDuration(many);
}

TEST_F(StreamBacklogTest, WhileFramesWaitTheWindowDoesNotGrow) {
  absl::Notification go_on;
  server_.BlockHandlers(&go_on);
  const rpc::CallHandle stream = OpenStream();
  server_.BlockHandlers(nullptr);
  // More than the window: the sender says that it was held back.
  for (int i = 0; i < 100; ++i) client_.SendMore(stream, 10'000);
  ExpectAnotherCallAnswered();
  const int64_t size = server_.window_size();
  server_.Do([&] {
    server_.poller().calls().ForEach([&](Call& call) {
      call.window_is_wanted = true;
      call.connection->Release(call, 10'000, /*drained=*/true);
    });
  });
  EXPECT_EQ(server_.window_size(), size);
  server_.TakeFrames(true);
  go_on.Notify();
  EXPECT_TRUE(Eventually([&] { return server_.frames() >= 101; }));
}

}  // namespace
}  // namespace rdma
