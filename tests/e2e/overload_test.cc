// Goal: what one caller or one peer overdoes costs it a status, and the others
// nothing: no loop without end, no stack used up, no memory held for ever.
// Method: more of it at once than queues, slots and stacks have room for.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"

namespace e2e {
namespace {

constexpr absl::Duration kLongest = absl::Seconds(20);

// A call of the callback API; lives until it is over.
struct AsyncCall {
  rpc::ClientContext context;
  Blob request;
  Summary response;
};

void StartConsume(const Client& client, std::unique_ptr<AsyncCall> call,
                  std::function<void(const rpc::Status&)> done) {
  AsyncCall* const started = call.release();
  client.stub().async()->Consume(
      &started->context, &started->request, &started->response,
      [started, done = std::move(done)](const rpc::Status& status) {
        delete started;
        done(status);
      });
}

// Pieces of registered memory that do not touch: a segment, and a window, each.
rpc::BufferChain Scattered(const Client& client, int pieces, size_t bytes) {
  rpc::BufferChain chain;
  for (int i = 0; i < pieces; ++i) {
    absl::StatusOr<rpc::Buffer> buffer =
        client.channel().AllocateBuffer(2 * bytes);
    if (!buffer.ok()) {
      ADD_FAILURE() << buffer.status();
      break;
    }
    chain.Append(buffer->Slice(0, bytes));
  }
  return chain;
}

// Many answers at once, each of which takes back 32 windows: more work than the
// send queue has slots.
TEST(OverloadTest, MoreWindowsToRevokeThanTheSendQueueHolds) {
  PeerProcess server = PeerProcess::Serve();
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(server.address());
  constexpr int kCalls = 64;
  for (int round = 0; round < TheDeviceUnderTest().Rounds(20); ++round) {
    std::atomic<int> ok = 0;
    absl::BlockingCounter left(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      auto call = std::make_unique<AsyncCall>();
      call->context.set_deadline(absl::Now() + kLongest);
      call->context.set_attachment(Scattered(client, 32, 4096));
      StartConsume(client, std::move(call), [&](const rpc::Status& status) {
        // Answers pile up until another thread takes over.
        if (ok.fetch_add(status.ok()) == 0) {
          absl::SleepFor(absl::Milliseconds(3));
        }
        left.DecrementCount();
      });
    }
    left.Wait();
    EXPECT_EQ(ok, kCalls);
  }
}

// A caller that starts its call again from the callback of the one that failed,
// without waiting, as a load generator does.
TEST(OverloadTest, CallbacksThatTryAgainAtOnceDoNotKeepTheChannelDown) {
  const std::string address = ServerUri(PortToComeBackTo());
  PeerProcess server = PeerProcess::Serve({}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  const Client client(address, QuickReconnect());
  ASSERT_OK(client.Echo(10));
  server.Kill();

  constexpr int kCallers = 16;
  std::atomic<bool> stop = false;
  std::atomic<int> failures = 0;
  std::atomic<int> served = 0;
  absl::BlockingCounter left(kCallers);
  std::function<void(const rpc::Status&)> again =
      [&](const rpc::Status& status) {
        if (status.ok()) ++served;
        if (status.ok() || stop) {
          left.DecrementCount();
          return;
        }
        ++failures;
        StartConsume(client, std::make_unique<AsyncCall>(), again);
      };
  for (int i = 0; i < kCallers; ++i) {
    StartConsume(client, std::make_unique<AsyncCall>(), again);
  }
  absl::SleepFor(absl::Milliseconds(300));
  server = PeerProcess::Serve({}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  const absl::Time give_up = absl::Now() + absl::Seconds(5);
  while (served < kCallers && absl::Now() < give_up) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(served, kCallers);
  stop = true;
  left.Wait();
  EXPECT_GT(failures, 0);
}

// Calls that wait for the connection and then cannot be sent: each frees its
// slot at once, for the next.
TEST(OverloadTest, ManyWaitingCallsThatCannotBeSentFailOneByOne) {
  const std::string address = ServerUri(PortToComeBackTo());
  PeerProcess server = PeerProcess::Serve({}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  server.Kill();
  Arguments arguments = QuickReconnect();
  arguments["verbena.eager_limit_bytes"] = 100;
  const Client client(address, arguments);
  const int kCalls = TheDeviceUnderTest().Rounds(100'000);
  const std::string data(200, 'x');
  std::atomic<int> exhausted = 0;
  absl::BlockingCounter left(kCalls);
  for (int i = 0; i < kCalls; ++i) {
    auto call = std::make_unique<AsyncCall>();
    call->request.set_data(data);
    call->context.set_wait_for_ready(true);
    StartConsume(client, std::move(call), [&](const rpc::Status& status) {
      if (status.error_code() == rpc::StatusCode::RESOURCE_EXHAUSTED) {
        ++exhausted;
      }
      left.DecrementCount();
    });
  }
  // Its limit is told with the handshake, so that the client does not send.
  server =
      PeerProcess::Serve({{"grpc.max_receive_message_length", 100}}, address);
  ASSERT_TRUE(server.ok()) << server.address();
  left.Wait();
  EXPECT_EQ(exhausted, kCalls);
  EXPECT_OK(client.Echo(10));
}

// A client that does not fetch an answer: that is the server's memory, and its
// call is over.
TEST(OverloadTest, AnAnswerThatIsNotFetchedHoldsMemoryForTheGraceOnly) {
  constexpr int64_t kMiB = 1 << 20;
  constexpr size_t kMostOfIt = 14 * kMiB;
  const Server server({{"verbena.memory_budget_bytes", 24 * kMiB},
                       {"verbena.offer_grace_ms", 100}});
  ASSERT_TRUE(server.ok()) << server.status();
  // It has no memory left, and waits for some.
  const Client full(server.address(),
                    {{"verbena.memory_budget_bytes", 16 * kMiB}});
  absl::StatusOr<rpc::Buffer> held = full.channel().AllocateBuffer(10 * kMiB);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_TRUE(
      HasCode(full.Produce(0, kMostOfIt), rpc::StatusCode::UNAVAILABLE));
  const Client client(server.address());
  EXPECT_OK(client.Produce(0, kMostOfIt));
  // It finds a way back.
  held = absl::NotFoundError("");
  EXPECT_OK(full.Produce(0, kMostOfIt));
}

}  // namespace
}  // namespace e2e
