// Goal: what waits for one stream costs no more the longer it is, and is
// bounded by what its peer was told it may send.
// Method: two sides over the software device, without rpc/, whose handlers or
// drivers the test holds up. Times are of this process's CPU, as the machine
// may be busy, and are compared with each other only.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rdma_transport/connection.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

using testing::AnotherCallIsAnswered;
using testing::Eventually;
using testing::Side;

constexpr char kPath[] = "/test.Test/Method";

class StreamBacklogTest : public ::testing::Test {
 protected:
  StreamBacklogTest() {
    server_.Listen();
    server_.AnswerAtOnce(false);
    connection_ = client_.ConnectTo(server_);
  }

  rpc::CallHandle OpenStream() {
    const int before = server_.opened();
    const rpc::CallHandle stream =
        client_.Open(connection_, 1, kPath, 0, /*end=*/false);
    EXPECT_TRUE(Eventually([&] { return server_.opened() == before + 1; }));
    return stream;
  }

  Side server_;
  Side client_;
  Connection* connection_ = nullptr;
};

// The CPU time that the frames of a stream take from when its handler returns,
// that many having come while it blocked.
class Backlog : public StreamBacklogTest {
 public:
  std::clock_t TimeToTake(int frames) {
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
    EXPECT_TRUE(AnotherCallIsAnswered(client_, connection_, server_));
    const int before = server_.frames();
    const std::clock_t start = std::clock();
    go_on.Notify();
    EXPECT_TRUE(
        Eventually([&] { return server_.frames() >= before + 1 + frames; },
                   absl::Minutes(3)));
    return std::clock() - start;
  }

 private:
  void TestBody() override {}
};

TEST(BacklogTest, ALongOneIsTakenInLinearTime) {
  std::clock_t few = std::numeric_limits<std::clock_t>::max();
  std::clock_t many = few;
  for (int i = 0; i < 3; ++i) {
    few = std::min(few, Backlog().TimeToTake(20'000));
    many = std::min(many, Backlog().TimeToTake(100'000));
  }
  const double ratio = static_cast<double>(many) / static_cast<double>(few);
  RecordProperty("ratio_times_100", static_cast<int>(100 * ratio));
  // Five times as many. Twenty-five times as long if each passed all others.
  EXPECT_LT(ratio, 16) << few << " and " << many << " of " << CLOCKS_PER_SEC
                       << " a second";
}

TEST_F(StreamBacklogTest, WhileFramesWaitTheWindowDoesNotGrow) {
  absl::Notification go_on;
  server_.BlockHandlers(&go_on);
  const rpc::CallHandle stream = OpenStream();
  server_.BlockHandlers(nullptr);
  // More than the window: the sender says that it was held back.
  for (int i = 0; i < 100; ++i) client_.SendMore(stream, 10'000);
  EXPECT_TRUE(AnotherCallIsAnswered(client_, connection_, server_));
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

// ---- A peer that grants nothing, for it does not look at what comes.

class DueWindowsTest : public StreamBacklogTest {
 protected:
  // Has the server release so many bytes, one at a time, of each of its calls
  // while the client's driver does nothing; returns how many frames wait then.
  size_t WaitingAfterReleasing(int bytes) {
    size_t waiting = 0;
    client_.Do([&] {
      server_.Do([&] {
        for (int i = 0; i < bytes; ++i) {
          server_.poller().calls().ForEach([](Call& call) {
            call.connection->Release(call, 1, /*drained=*/false);
          });
        }
        server_.poller().calls().ForEach(
            [&](Call& call) { waiting = call.connection->waiting_frames(); });
      });
    });
    return waiting;
  }
  int64_t WindowOf(rpc::CallHandle stream) {
    int64_t window = 0;
    client_.Do([&] {
      Call* const call = client_.poller().calls().Find(stream);
      if (call != nullptr) window = call->send_window;
    });
    return window;
  }
};

TEST_F(DueWindowsTest, OnesOfACallBecomeOne) {
  const rpc::CallHandle stream = OpenStream();
  const int64_t window = WindowOf(stream);
  EXPECT_LE(WaitingAfterReleasing(100'000), 2u);
  EXPECT_TRUE(Eventually([&] { return WindowOf(stream) == window + 100'000; }))
      << WindowOf(stream) - window;
  EXPECT_LE(WaitingAfterReleasing(1'000), 2u);
  EXPECT_TRUE(Eventually([&] { return WindowOf(stream) == window + 101'000; }));
}

TEST_F(DueWindowsTest, AreSentOfEachCallThatIsThereStill) {
  constexpr int kStreams = 1000;  // more than there are credits
  std::vector<rpc::CallHandle> streams;
  for (int i = 0; i < kStreams; ++i) streams.push_back(OpenStream());
  const int64_t window = WindowOf(streams.front());
  client_.Do([&] {
    server_.Do([&] {
      std::vector<Call*> calls;
      server_.poller().calls().ForEach(
          [&](Call& call) { calls.push_back(&call); });
      for (Call* const call : calls) {
        call->connection->Release(*call, 1'000, /*drained=*/false);
      }
      Connection* const connection = calls.front()->connection;
      // Windows take part in the order of what waits.
      for (size_t i = 0; i < calls.size(); i += 2) {
        connection->ResetCall(*calls[i], absl::AbortedError("by the test"));
      }
      EXPECT_LE(connection->waiting_frames(), 1u + kStreams + kStreams / 2);
    });
  });
  EXPECT_TRUE(Eventually([&] { return client_.failed() == kStreams / 2; }));
  EXPECT_TRUE(Eventually([&] {
    int grown = 0;
    for (const rpc::CallHandle stream : streams) {
      grown += WindowOf(stream) == window + 1'000;
    }
    return grown == kStreams / 2;
  }));
  EXPECT_EQ(client_.down(), 0);
}

TEST_F(DueWindowsTest, OfCallsThatAreGoneDoNotPileUp) {
  size_t waiting = 0;
  std::vector<rpc::CallHandle> streams;
  for (int i = 0; i < 300; ++i) streams.push_back(OpenStream());
  client_.Do([&] {
    server_.Do([&] {
      std::vector<Call*> calls;
      server_.poller().calls().ForEach(
          [&](Call& call) { calls.push_back(&call); });
      Connection* const connection = calls.front()->connection;
      const auto release = [&](Call* call) {
        connection->Release(*call, 1, /*drained=*/false);
      };
      std::for_each(calls.begin(), calls.end(), release);
      for (size_t i = 1; i < calls.size(); ++i) {
        connection->ResetCall(*calls[i], absl::AbortedError("by the test"));
      }
      const size_t before = connection->waiting_frames();
      release(calls.front());
      waiting = before - connection->waiting_frames();
    });
  });
  EXPECT_GT(waiting, 0u) << "those of the calls that were reset";
}

TEST_F(DueWindowsTest, GoWithTheirConnection) {
  OpenStream();
  client_.Do([&] {
    server_.Do([&] {
      server_.poller().calls().ForEach([](Call& call) {
        for (int i = 0; i < 1'000; ++i) {
          call.connection->Release(call, 1, /*drained=*/false);
        }
      });
    });
    connection_->Close(absl::AbortedError("by the test"));
  });
  EXPECT_TRUE(Eventually([&] { return server_.down() == 1; }));
}

}  // namespace
}  // namespace rdma
