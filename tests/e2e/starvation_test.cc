// Goal: handlers that block, however many, stall nobody else: not the calls of
// other connections, nor further calls of their own.
// Method: handlers held in Block on one connection, quick calls beside them; at
// last more of them than the server has receive buffers.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

// Calls in flight that block in their handlers.
class BlockedCalls {
 public:
  // Each brings `bytes` along, which the handler holds.
  BlockedCalls(const Client& client, int count, size_t bytes) : done_(count) {
    for (int i = 0; i < count; ++i) {
      Call& call = calls_.emplace_back();
      call.context.set_deadline(absl::Now() + absl::Seconds(60));
      call.request.set_data(std::string(bytes, 'x'));
      client.stub().async()->Block(&call.context, &call.request, &call.response,
                                   [this, &call](rpc::Status status) {
                                     call.status = std::move(status);
                                     done_.DecrementCount();
                                   });
    }
  }

  void ExpectAllEndWell() {
    done_.Wait();
    for (const Call& call : calls_) EXPECT_OK(call.status);
  }

 private:
  struct Call {
    rpc::ClientContext context;
    Blob request;
    Nothing response;
    rpc::Status status;
  };
  std::deque<Call> calls_;
  absl::BlockingCounter done_;
};

// Quick calls that each take far less than anything that waits for a blocked
// handler would.
void ExpectQuickCalls(const Client& client, int count) {
  for (int i = 0; i < count; ++i) {
    ASSERT_OK(client.Echo(100, 0, absl::Seconds(5))) << "call " << i;
  }
  ASSERT_OK(client.Echo(100'000, 1'000'000, absl::Seconds(5)));
}

void BlockAndCall(const Arguments& server_arguments, int handlers,
                  size_t bytes) {
  const PeerProcess server = PeerProcess::Serve(server_arguments);
  ASSERT_TRUE(server.ok()) << server.address();
  const Client blocked(server.address());
  const Client quick(server.address(), QuickReconnect());
  ASSERT_OK(quick.Echo(10));
  BlockedCalls calls(blocked, handlers, bytes);
  EXPECT_TRUE(Eventually([&] { return quick.Observe().blocked() == handlers; }))
      << quick.Observe().blocked() << " of " << handlers;
  ExpectQuickCalls(quick, TheDeviceUnderTest().Rounds(500));
  // Also on the connection with the blocked ones.
  ExpectQuickCalls(blocked, TheDeviceUnderTest().Rounds(100));
  EXPECT_OK(quick.ReleaseBlocked());
  calls.ExpectAllEndWell();
  ExpectQuickCalls(blocked, 10);
}

TEST(StarvationTest, OneBlockedHandler) { BlockAndCall({}, 1, 10); }

TEST(StarvationTest, ManyBlockedHandlers) { BlockAndCall({}, 64, 10); }

TEST(StarvationTest, BlockedHandlersThatHoldLargeMessages) {
  BlockAndCall({}, 64, 100'000);
}

TEST(StarvationTest, MoreBlockedHandlersThanReceiveBuffers) {
  // Frames of 8 KB that the handlers keep, with room for about 100.
  BlockAndCall({{"verbena.receive_budget_bytes", 1 << 20}}, 200, 8000);
}

TEST(StarvationTest, CallsBeyondTheHandlerThreadsWaitTheirTurn) {
  const PeerProcess server =
      PeerProcess::Serve({{"verbena.handler_threads", 8}});
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  for (int i = 0; i < 3; ++i) {
    BlockedCalls calls(client, 6, 10);
    EXPECT_TRUE(Eventually([&] { return client.Observe().blocked() == 6; }));
    EXPECT_OK(client.ReleaseBlocked());
    calls.ExpectAllEndWell();
  }
}

// From the first one on, which is not yet known to sleep. A quick call that
// waited for handlers to wake would take as long as they sleep, or more.
TEST(StarvationTest, HandlersThatSleepDoNotDelayQuickCalls) {
  constexpr absl::Duration kSleep = absl::Milliseconds(200);
  constexpr int kThreads = 8;
  constexpr int kCallsOfEach = 4;
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client sleepy(server.address());
  const Client quick(server.address(), QuickReconnect());
  ASSERT_OK(quick.Echo(10));
  std::atomic<int> asleep = kThreads;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kCallsOfEach; ++j) EXPECT_OK(sleepy.Sleep(kSleep));
      --asleep;
    });
  }
  std::vector<absl::Duration> times;
  while (asleep == kThreads) {
    const absl::Time start = absl::Now();
    EXPECT_OK(quick.Echo(100));
    times.push_back(absl::Now() - start);
  }
  for (std::thread& thread : threads) thread.join();
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], kSleep / 10);
  EXPECT_LT(times[times.size() * 9 / 10], kSleep / 2);
}

TEST(StarvationTest, ALargeTransferDoesNotStallSmallCalls) {
  const PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client quick(server.address());
  ASSERT_OK(quick.Echo(10));
  const PeerProcess load = PeerProcess::Upload(
      server.address(), 4 * TheDeviceUnderTest().large_bytes);
  std::vector<absl::Duration> times;
  for (int i = 0; i < TheDeviceUnderTest().Rounds(300); ++i) {
    const absl::Time start = absl::Now();
    ASSERT_OK(quick.Echo(100, 0, absl::Seconds(5)));
    times.push_back(absl::Now() - start);
  }
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], absl::Milliseconds(100));
}

}  // namespace
}  // namespace e2e
