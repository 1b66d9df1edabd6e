// Goal: a memory budget that is used up ends in RESOURCE_EXHAUSTED within the
// deadline, on the side that it concerns, and in nothing else: calls that need
// no memory go on, the server serves on, and what calls held is free again.
// Method: budgets of some MiB on either side, attachments that do not fit, and
// allocations of (nearly) all of the budget to see what is free.
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBudget = 64 * kMiB;
const Arguments kSmallBudget = {{"verbena.memory_budget_bytes", kBudget}};

// Ends soon; `limit` is what the status' text must name.
void ExpectExhausted(const rpc::Status& status, const std::string& limit) {
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_NE(status.error_message().find(limit), std::string::npos) << status;
}

TEST(ClientMemoryTest, AnAllocationBeyondTheBudgetNamesIt) {
  const PeerProcess server = PeerProcess::Serve();
  const Client client(server.address(), kSmallBudget);
  const absl::StatusOr<rpc::Buffer> buffer =
      client.channel().AllocateBuffer(2 * kBudget);
  ExpectExhausted(buffer.status(), "budget");
  EXPECT_OK(client.Echo(100'000, 1000));
}

TEST(ClientMemoryTest, ARequestBeyondTheBudgetFailsAndTheNextGoesThrough) {
  const PeerProcess server = PeerProcess::Serve();
  const Client client(server.address(), kSmallBudget);
  for (int i = 0; i < 5; ++i) {
    ExpectExhausted(client.Consume(2 * kBudget, 0), "budget");
    EXPECT_OK(client.Consume(0, kBudget / 2));
    EXPECT_OK(client.Echo(10));
  }
}

TEST(ClientMemoryTest, AResponseBeyondTheBudgetFailsWithinTheDeadline) {
  const PeerProcess server = PeerProcess::Serve();
  const Client client(server.address(), kSmallBudget);
  for (int i = 0; i < 2; ++i) {
    ExpectExhausted(client.Produce(0, 2 * kBudget, absl::Seconds(10)), "");
    EXPECT_OK(client.Produce(0, kBudget / 2));
    EXPECT_OK(client.Echo(10));
  }
}

TEST(ClientMemoryTest, CallsWithoutMemoryGoOnWhileTheBudgetIsUsedUp) {
  const PeerProcess server = PeerProcess::Serve();
  const Client client(server.address(), kSmallBudget);
  std::vector<rpc::Buffer> pieces;
  while (true) {
    absl::StatusOr<rpc::Buffer> piece = client.channel().AllocateBuffer(kMiB);
    if (!piece.ok()) break;
    pieces.push_back(*std::move(piece));
  }
  EXPECT_GT(static_cast<int64_t>(pieces.size()) * kMiB, kBudget / 2);
  EXPECT_OK(client.Echo(100));
  // It waits for memory until it gives up or the deadline passes.
  const rpc::Status status = client.Produce(0, 4 * kMiB, absl::Seconds(1));
  EXPECT_FALSE(status.ok());
  EXPECT_OK(client.Echo(100));
  // The same call gets its memory when some is freed in the meantime.
  std::thread releaser([&] {
    absl::SleepFor(absl::Milliseconds(200));
    pieces.clear();
  });
  EXPECT_OK(client.Produce(0, 4 * kMiB, absl::Seconds(20)));
  releaser.join();
}

TEST(ServerMemoryTest, ARequestBeyondTheBudgetFailsWithinTheDeadline) {
  const PeerProcess server = PeerProcess::Serve(kSmallBudget);
  const Client client(server.address());
  const Client other(server.address(), QuickReconnect());
  ExpectExhausted(client.Consume(0, 2 * kBudget, absl::Seconds(10)), "");
  EXPECT_OK(client.Consume(0, kBudget / 2));
  EXPECT_OK(other.Echo(100'000));
}

TEST(ServerMemoryTest, AResponseBeyondTheBudgetFails) {
  const PeerProcess server = PeerProcess::Serve(kSmallBudget);
  const Client client(server.address());
  for (int i = 0; i < 3; ++i) {
    ExpectExhausted(client.Produce(0, 2 * kBudget), "budget");
    EXPECT_OK(client.Produce(0, kBudget / 2));
  }
}

TEST(ServerMemoryTest, ManyLargeCallsShareASmallBudget) {
  const PeerProcess server = PeerProcess::Serve(kSmallBudget);
  const Client client(server.address());
  std::vector<std::thread> threads;
  std::atomic<int> succeeded = 0;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 4; ++j) {
        const rpc::Status status = client.Consume(0, 12 * kMiB);
        if (status.ok()) {
          ++succeeded;
        } else {
          ExpectExhausted(status, "");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(succeeded, 16);
  // Nothing leaked: most of the budget fits into one request.
  EXPECT_OK(client.Consume(0, kBudget - 16 * kMiB));
}

// Either call takes more than half of the budget, and the handler of the second
// does not wait for memory.
TEST(ServerMemoryTest, ARequestsMemoryIsFreeWhenItIsAnswered) {
  const PeerProcess server = PeerProcess::Serve(kSmallBudget);
  const Client client(server.address());
  for (int i = TheDeviceUnderTest().Rounds(20); i > 0; --i) {
    ASSERT_OK(client.Consume(0, kBudget - 16 * kMiB));
    ASSERT_OK(client.Produce(0, kBudget - 16 * kMiB));
  }
}

TEST(ServerMemoryTest, ACallsMemoryIsFreeWhenItIsCancelled) {
  const PeerProcess server = PeerProcess::Serve(kSmallBudget);
  const Client client(server.address());
  for (int i = 0; i < 10; ++i) {
    rpc::ClientContext context;
    context.set_deadline(absl::Now() + absl::Milliseconds(300));
    absl::StatusOr<rpc::Buffer> buffer =
        client.channel().AllocateBuffer(kBudget / 2);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    context.set_attachment(rpc::BufferChain(*std::move(buffer)));
    Nothing response;
    // The handler holds the attachment until it hears of the deadline.
    EXPECT_TRUE(HasCode(client.stub().Block(&context, Blob(), &response),
                        rpc::StatusCode::DEADLINE_EXCEEDED));
  }
  EXPECT_OK(client.Consume(0, kBudget - 16 * kMiB));
}

}  // namespace
}  // namespace e2e
