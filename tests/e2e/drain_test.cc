// Goal: a call that begins at the very moment at which a server shuts down
// either runs and is answered, or does not run and is told so.
// Method: clients that start calls without pause while the server shuts down,
// over and over; every call is accounted for on both sides.
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/device_under_test.h"
#include "tests/e2e/receipts.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

// Large requests take the longer.
int RoundsWith(size_t attachment_bytes) {
  return TheDeviceUnderTest().Rounds(attachment_bytes == 0 ? 20 : 5);
}

// Keeps some calls under way until one fails; `numbers` are theirs.
void CallUntilOneFails(ReceiptClient& client, ReceiptServer& server) {
  constexpr size_t kUnderWay = 8;
  std::deque<uint64_t> under_way;
  bool failed = false;
  while (!failed || !under_way.empty()) {
    while (!failed && under_way.size() < kUnderWay) {
      under_way.push_back(client.Start());
    }
    const uint64_t number = under_way.front();
    under_way.pop_front();
    const Receipt receipt = client.Finish(number);
    if (receipt.status.ok()) {
      EXPECT_TRUE(server.Saw(number));
      continue;
    }
    failed = true;
    EXPECT_EQ(receipt.status.code(), absl::StatusCode::kUnavailable)
        << receipt.status;
    // A handler that is cut off may just be about to begin.
    const auto seen = [&] { return server.Saw(number); };
    EXPECT_TRUE(receipt.may_have_run ? Eventually(seen) : !seen())
        << receipt.status << ", may have run: " << receipt.may_have_run;
  }
}

// A server that shuts down while clients call, and has `drain` for it.
void ShutDownAmidCalls(int round, absl::Duration drain,
                       size_t attachment_bytes) {
  ReceiptServer server;
  std::deque<ReceiptClient> clients;
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    ReceiptClient& client =
        clients.emplace_back(server.address(), attachment_bytes);
    callers.emplace_back([&] { CallUntilOneFails(client, server); });
  }
  const size_t calls = 50 + static_cast<size_t>(round % 7) * 10;
  EXPECT_TRUE(Eventually([&] { return server.calls() > calls; }));
  server.Shutdown(absl::Now() + drain);
  for (std::thread& caller : callers) caller.join();
}

class DrainLoadTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(AttachmentBytes, DrainLoadTest,
                         ::testing::Values(0, 1'000'000));

TEST_P(DrainLoadTest, ACallThatBeginsMeanwhileRunsOrIsToldThatItDidNot) {
  const int rounds = RoundsWith(GetParam());
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    ShutDownAmidCalls(round, absl::Seconds(20), GetParam());
  }
}

TEST_P(DrainLoadTest, SoItIsWhereThereIsNoTimeToDrain) {
  const int rounds = RoundsWith(GetParam());
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    ShutDownAmidCalls(round, absl::ZeroDuration(), GetParam());
  }
}

TEST(DrainTest, CallsThatRunAreAnsweredAndNewOnesRefused) {
  ReceiptServer server;
  ReceiptClient client(server.address());
  server.Answer(false);
  const uint64_t held = client.Start();
  EXPECT_TRUE(Eventually([&] { return server.held() == 1; }));
  std::thread stopper(
      [&] { server.Shutdown(absl::Now() + absl::Seconds(30)); });
  EXPECT_TRUE(client.transport().WaitForStateChange(
      rpc::ConnectivityState::kReady, absl::Now() + absl::Seconds(20)));
  const uint64_t late = client.Start();
  const Receipt refused = client.Finish(late);
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(refused.may_have_run);
  EXPECT_FALSE(server.Saw(late));
  server.Answer(true);
  const Receipt receipt = client.Finish(held);
  EXPECT_TRUE(receipt.status.ok()) << receipt.status;
  stopper.join();
}

TEST(DrainTest, AClientThatHasNothingToDoDoesNotHoldItUp) {
  ReceiptServer server;
  ReceiptClient client(server.address());
  EXPECT_TRUE(client.Call().status.ok());
  const absl::Time start = absl::Now();
  server.Shutdown(absl::Now() + absl::Seconds(20));
  EXPECT_LT(absl::Now() - start, absl::Milliseconds(900));
}

}  // namespace
}  // namespace e2e
