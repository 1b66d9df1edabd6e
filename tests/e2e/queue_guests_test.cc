// Goal: a thread in CompletionQueue::Next drives its channel's transport, and
// the runtime's own threads sleep meanwhile; calls that others wait for do not
// depend on it.
// Method: a server in a process of its own, and how often the keepers of this
// process went to sleep, which the kernel counts.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

constexpr int kCalls = 2'000;

class QueueGuestsTest : public testing::Test {
 protected:
  QueueGuestsTest()
      : server_(PeerProcess::Serve()), client_(server_.address()) {}
  ~QueueGuestsTest() override {
    queue_.Shutdown();
    EXPECT_FALSE(Next());
  }
  void SetUp() override {
    ASSERT_TRUE(server_.ok()) << server_.address();
    ASSERT_OK(client_.Echo(1));
  }

  bool Next() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  // A call that is begun by the queue.
  struct BegunCall {
    BegunCall(const Client& client, rpc::CompletionQueue& queue)
        : call(client.stub().AsyncEcho(&context, Blob(), &queue)) {
      call->Finish(&response, &status, nullptr);
    }

    TimedContext context;
    Blob response;
    rpc::Status status;
    const std::unique_ptr<rpc::ClientAsyncResponseReader<Blob>> call;
  };
  rpc::Status CallByQueue() {
    const BegunCall call(client_, queue_);
    EXPECT_TRUE(Next());
    return call.status;
  }
  rpc::Status CallByCallback() {
    TimedContext context;
    Blob request;
    Blob response;
    rpc::Status status;
    absl::Notification done;
    client_.stub().async()->Echo(&context, &request, &response,
                                 [&](rpc::Status ended) {
                                   status = std::move(ended);
                                   done.Notify();
                                 });
    done.WaitForNotification();
    return status;
  }

  const PeerProcess server_;
  const Client client_;
  rpc::CompletionQueue queue_;
  absl::Mutex mutex_;
  // Until all events came.
  std::vector<std::unique_ptr<BegunCall>> begun_ ABSL_GUARDED_BY(mutex_);
};

// Each call had a keeper come, and go again, before threads in Next were
// guests. The monitor still sends one where this thread gets no CPU for a
// millisecond or two, so of several looks the best one counts.
TEST_F(QueueGuestsTest, KeepersSleepThroughAQueuesCalls) {
  int64_t least = kCalls;
  for (int look = 0; look < 5 && least >= kCalls / 4; ++look) {
    for (int i = 0; i < 10; ++i) ASSERT_OK(CallByQueue());
    const int64_t before = SleepsOf(kKeepers);
    for (int i = 0; i < kCalls; ++i) ASSERT_OK(CallByQueue());
    least = std::min(least, SleepsOf(kKeepers) - before);
  }
  EXPECT_LT(least, kCalls / 4);
}

TEST_F(QueueGuestsTest, CallsOfOthersGoOnWhileAGuestStaysAway) {
  ASSERT_OK(CallByQueue());
  const BegunCall call(client_, queue_);
  for (int i = 0; i < 100; ++i) ASSERT_OK(CallByCallback());
  ASSERT_OK(client_.Echo(1));
  EXPECT_TRUE(Next());
  EXPECT_OK(call.status);
}

TEST_F(QueueGuestsTest, AGuestsOwnCallsAreAnsweredWhileItStaysAway) {
  ASSERT_OK(CallByQueue());
  const BegunCall call(client_, queue_);
  void* tag;
  bool ok = false;
  // Nobody is in Next.
  EXPECT_EQ(queue_.AsyncNext(&tag, &ok, absl::Now() + absl::Seconds(30)),
            rpc::CompletionQueue::GOT_EVENT);
  EXPECT_OK(call.status);
}

TEST_F(QueueGuestsTest, SeveralThreadsTakeEvents) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int call = 0; call < kCalls / 10; ++call) {
        // Its event may go to another thread, which waits for one, too.
        auto begun = std::make_unique<BegunCall>(client_, queue_);
        EXPECT_TRUE(Next());
        absl::MutexLock lock(&mutex_);
        begun_.push_back(std::move(begun));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  absl::MutexLock lock(&mutex_);
  for (const auto& call : begun_) EXPECT_OK(call->status);
}

// Clients with another spin have another poller.
TEST_F(QueueGuestsTest, CallsOfChannelsThatAreDrivenApartAllEnd) {
  const Client apart(server_.address(), {{"verbena.spin_us", 20}});
  const std::array<const Client*, 2> clients = {&client_, &apart};
  for (int i = 0; i < 200; ++i) {
    const size_t first = i / 3 % 2;
    const BegunCall one(*clients[first], queue_);
    const BegunCall other(*clients[1 - first], queue_);
    const BegunCall third(*clients[first], queue_);
    for (int event = 0; event < 3; ++event) ASSERT_TRUE(Next());
    ASSERT_OK(one.status);
    ASSERT_OK(other.status);
    ASSERT_OK(third.status);
  }
}

TEST_F(QueueGuestsTest, CallsBegunElsewhereComeToAThreadThatOnlyTakesEvents) {
  std::thread taker([this] {
    for (int i = 0; i < kCalls; ++i) EXPECT_TRUE(Next());
  });
  for (int i = 0; i < kCalls / 10; ++i) {
    std::vector<std::unique_ptr<BegunCall>> calls;
    for (int j = 0; j < 10; ++j) {
      calls.push_back(std::make_unique<BegunCall>(client_, queue_));
    }
    absl::MutexLock lock(&mutex_);
    for (auto& call : calls) begun_.push_back(std::move(call));
  }
  taker.join();
  absl::MutexLock lock(&mutex_);
  for (const auto& call : begun_) EXPECT_OK(call->status);
}

}  // namespace
}  // namespace e2e
