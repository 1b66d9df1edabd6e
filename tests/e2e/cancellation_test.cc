// Goal: a cancelled call, and one past its deadline, ends at once for the
// caller, reaches the handler, and gives back all memory on both sides, at
// whatever moment it comes.
// Method: blocked handlers that report being cut off; TryCancel and deadlines
// at moments spread over the life of small calls and of large transfers.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBudget = 128 * kMiB;
const size_t kLarge = TheDeviceUnderTest().large_bytes;
const int kRounds = TheDeviceUnderTest().Rounds(40);
const Arguments kBudgetArguments = {{"verbena.memory_budget_bytes", kBudget}};

class CancellationTest : public testing::Test {
 protected:
  CancellationTest()
      : server_(PeerProcess::Serve(kBudgetArguments)),
        client_(server_.address(), kBudgetArguments) {}

  // Whether both sides have their memory back: most of either's budget goes
  // into one call.
  void ExpectAllMemoryFree() {
    rpc::Status consumed;
    rpc::Status produced;
    EXPECT_TRUE(Eventually([&] {
      consumed = client_.Consume(0, kBudget - 40 * kMiB);
      produced = client_.Produce(0, kBudget - 40 * kMiB);
      return consumed.ok() && produced.ok();
    })) << "Consume: "
        << consumed.ToString() << "\nProduce: " << produced.ToString();
  }

  PeerProcess server_;
  Client client_;
};

TEST_F(CancellationTest, TryCancelReachesTheHandler) {
  rpc::ClientContext context;
  rpc::Status status;
  std::thread caller([&] {
    Nothing response;
    status = client_.stub().Block(&context, Blob(), &response);
  });
  ASSERT_TRUE(Eventually([&] { return client_.Observe().blocked() == 1; }));
  context.TryCancel();
  caller.join();
  EXPECT_TRUE(HasCode(status, rpc::StatusCode::CANCELLED));
  EXPECT_TRUE(Eventually([&] {
    const Observation seen = client_.Observe();
    return seen.blocked() == 0 && seen.cut_off() == 1;
  }));
}

TEST_F(CancellationTest, ADeadlineReachesTheHandler) {
  // Connected first: a call whose time is over on the way has no handler.
  ASSERT_OK(client_.Echo(10));
  const absl::Time start = absl::Now();
  EXPECT_TRUE(HasCode(client_.Block(absl::Seconds(1)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(999));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
  EXPECT_TRUE(Eventually([&] {
    const Observation seen = client_.Observe();
    return seen.blocked() == 0 && seen.cut_off() == 1;
  }));
}

TEST_F(CancellationTest, ADeadlineInThePastEndsTheCallBeforeItRuns) {
  EXPECT_TRUE(HasCode(client_.Echo(10, 0, -absl::Seconds(1)),
                      rpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_OK(client_.Echo(10));
}

TEST_F(CancellationTest, ManyBlockedCallsAreCutOff) {
  constexpr int kCalls = 8;
  const Client other(server_.address(), QuickReconnect());
  std::array<rpc::ClientContext, kCalls> contexts;
  std::vector<std::thread> callers;
  for (rpc::ClientContext& context : contexts) {
    callers.emplace_back([&] {
      Nothing response;
      EXPECT_TRUE(HasCode(client_.stub().Block(&context, Blob(), &response),
                          rpc::StatusCode::CANCELLED));
    });
  }
  EXPECT_TRUE(Eventually([&] { return other.Observe().blocked() == kCalls; }));
  for (rpc::ClientContext& context : contexts) context.TryCancel();
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(Eventually([&] {
    const Observation seen = other.Observe();
    return seen.blocked() == 0 && seen.cut_off() == kCalls;
  }));
}

// Runs `call` many times, each cancelled by another thread at another moment.
template <typename Call>
void CancelAtAllMoments(int rounds, absl::Duration longest, Call call) {
  std::mt19937_64 random(20261121);
  int cancelled = 0;
  for (int i = 0; i < rounds; ++i) {
    rpc::ClientContext context;
    context.set_deadline(absl::Now() + absl::Seconds(30));
    const absl::Duration moment =
        longest * static_cast<double>(random() % 1000) / 1000;
    std::atomic<bool> begun = false;
    std::thread canceller([&] {
      while (!begun) std::this_thread::yield();
      const absl::Time when = absl::Now() + moment;
      while (absl::Now() < when) std::this_thread::yield();
      context.TryCancel();
    });
    begun = true;
    const rpc::Status status = call(context);
    canceller.join();
    // Handlers of calls that were cancelled may still hold the server's memory:
    // they only hear of it when they ask.
    if (status.ok() ||
        status.error_code() == rpc::StatusCode::RESOURCE_EXHAUSTED) {
      continue;
    }
    ++cancelled;
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::CANCELLED)) << i;
  }
  EXPECT_GT(cancelled, 0);
}

TEST_F(CancellationTest, TryCancelRacesWithSmallCalls) {
  CancelAtAllMoments(TheDeviceUnderTest().Rounds(1000), absl::Microseconds(60),
                     [&](rpc::ClientContext& context) {
                       Blob request;
                       request.set_data("small");
                       Blob response;
                       return client_.stub().Echo(&context, request, &response);
                     });
  EXPECT_OK(client_.Echo(100'000, 100'000));
}

// Calls that are begun within the end of another one, on the thread that
// drives: one after the other, each of which another thread cancels.
TEST_F(CancellationTest, TryCancelRacesWithCallsBegunInCallbacks) {
  struct Chain {
    explicit Chain(Probe::Stub* stub, int calls) : stub(stub), left(calls) {
      request.set_data("small");
    }
    void Next() {
      const std::shared_ptr<rpc::ClientContext> context =
          std::make_shared<rpc::ClientContext>();
      {
        absl::MutexLock lock(&mutex);
        current = context;
      }
      stub->async()->Echo(
          context.get(), &request, &response,
          [this, context](const rpc::Status& status) {
            if (!status.ok()) {
              ++cancelled;
              EXPECT_TRUE(HasCode(status, rpc::StatusCode::CANCELLED));
            }
            if (--left == 0) return done.Notify();
            Next();
          });
    }

    Probe::Stub* const stub;
    Blob request, response;
    int left;
    int cancelled = 0;
    absl::Mutex mutex;
    std::shared_ptr<rpc::ClientContext> current ABSL_GUARDED_BY(mutex);
    absl::Notification done;
  };
  Chain chain(&client_.stub(), TheDeviceUnderTest().Rounds(20'000));
  chain.Next();
  std::mt19937_64 random(20261122);
  while (!chain.done.HasBeenNotified()) {
    std::shared_ptr<rpc::ClientContext> context;
    {
      absl::MutexLock lock(&chain.mutex);
      context = chain.current;
    }
    context->TryCancel();
    for (uint64_t spins = random() % 2000; spins > 0; --spins) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  EXPECT_GT(chain.cancelled, 0);
  EXPECT_OK(client_.Echo(100'000, 100'000));
}

TEST_F(CancellationTest, InTheMidstOfALargeRequest) {
  ASSERT_OK(client_.Consume(0, kLarge));
  absl::StatusOr<rpc::Buffer> buffer = client_.channel().AllocateBuffer(kLarge);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  const rpc::BufferChain attachment(*std::move(buffer));
  CancelAtAllMoments(TheDeviceUnderTest().Rounds(60), absl::Milliseconds(8),
                     [&](rpc::ClientContext& context) {
                       context.set_attachment(attachment);
                       Summary summary;
                       return client_.stub().Consume(&context, Blob(),
                                                     &summary);
                     });
  ExpectAllMemoryFree();
}

TEST_F(CancellationTest, InTheMidstOfALargeResponse) {
  ASSERT_OK(client_.Produce(0, kLarge));
  CancelAtAllMoments(TheDeviceUnderTest().Rounds(60), absl::Milliseconds(30),
                     [&](rpc::ClientContext& context) {
                       Sizes request;
                       request.set_attachment_bytes(kLarge);
                       Blob response;
                       return client_.stub().Produce(&context, request,
                                                     &response);
                     });
  ExpectAllMemoryFree();
}

TEST_F(CancellationTest, DeadlinesInTheMidstOfLargeTransfers) {
  std::mt19937_64 random(3);
  int expired = 0;
  for (int i = 0; i < kRounds; ++i) {
    const absl::Duration timeout = absl::Microseconds(random() % 40'000);
    const rpc::Status status = i % 2 == 0 ? client_.Consume(0, kLarge, timeout)
                                          : client_.Produce(0, kLarge, timeout);
    if (status.ok()) continue;
    if (status.error_code() == rpc::StatusCode::RESOURCE_EXHAUSTED) {
      // Handlers whose calls have ended are at work still, with all the memory.
      ExpectAllMemoryFree();
      continue;
    }
    ++expired;
    EXPECT_TRUE(HasCode(status, rpc::StatusCode::DEADLINE_EXCEEDED));
  }
  EXPECT_GT(expired, 0);
  ExpectAllMemoryFree();
}

// What a cancelled call's memory is used for afterwards must not reach a
// server that was still reading: the server would sum up the new bytes. That
// cannot be seen from outside; that the memory is free only when nobody reads
// it can: its new contents arrive whole.
TEST_F(CancellationTest, MemoryOfCancelledCallsIsUsedAgainUnharmed) {
  std::mt19937_64 random(5);
  for (int i = 0; i < kRounds; ++i) {
    const absl::Duration timeout = absl::Microseconds(random() % 20'000);
    client_.Consume(0, kLarge, timeout).IgnoreError();
    ASSERT_OK(client_.Echo(10, kLarge / 4));
  }
}

}  // namespace
}  // namespace e2e
