// Goal: a thread that waits for its call drives for all calls of its transport,
// also for those that callbacks begin, and no other thread is called for them,
// or takes its CPU now and then to see whether it drives.
// Method: a server in a process of its own, a call that takes long, and beside
// it a chain of calls, each of which is begun by the callback of the one
// before; how often the keepers of this process, and its monitor, went to
// sleep, which the kernel counts.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/rpc.h"
#include "tests/e2e/endpoints.h"
#include "tests/e2e/peer_process.h"
#include "tests/e2e/resources.h"

namespace e2e {
namespace {

// Begins its next call when one is over, until it is stopped.
class Chain final : public rpc::ClientUnaryReactor {
 public:
  explicit Chain(const Client& client) : client_(client) {}

  void Begin() {
    context_.emplace();
    client_.stub().async()->Echo(&*context_, &request_, &response_, this);
    StartCall();
  }
  // Returns how many calls there were.
  int64_t Stop() {
    stopping_ = true;
    over_.WaitForNotification();
    return calls_;
  }

 private:
  void OnDone(const rpc::Status& status) override {
    EXPECT_OK(status);
    ++calls_;
    stopping_ ? over_.Notify() : Begin();
  }

  const Client& client_;
  std::optional<TimedContext> context_;
  Blob request_;
  Blob response_;
  int64_t calls_ = 0;
  std::atomic<bool> stopping_{false};
  absl::Notification over_;
};

// How often threads sleep while a chain runs. One that gets no CPU for some
// milliseconds has others called, so of several looks the best one counts.
class WaitingThreadTest : public testing::Test {
 protected:
  static constexpr int64_t kFew = 5;

  int64_t LeastSleeps(const char* threads) const {
    constexpr int64_t kMany = 1'000;
    int64_t least = kMany;
    for (int look = 0; look < 20 && least > kFew; ++look) {
      Chain chain(client_);
      const int64_t before = SleepsOf(threads);
      chain.Begin();
      EXPECT_OK(client_.Sleep(absl::Milliseconds(200)));
      const int64_t sleeps = SleepsOf(threads) - before;
      if (chain.Stop() > kMany) least = std::min(least, sleeps);
    }
    return least;
  }

  const PeerProcess server_ = PeerProcess::Serve();
  const Client client_{server_.address()};
};

// Where each call of the chain has a keeper come, one comes dozens of times at
// the least.
TEST_F(WaitingThreadTest, NobodyIsCalledForCallsThatCallbacksBegin) {
  ASSERT_TRUE(server_.ok()) << server_.address();
  ASSERT_OK(client_.Echo(1));
  EXPECT_LE(LeastSleeps(kKeepers), kFew);
}

// Looking every 5 ms it would sleep 40 times.
TEST_F(WaitingThreadTest, TheMonitorDoesNotLookAtAThreadThatDrives) {
  ASSERT_TRUE(server_.ok()) << server_.address();
  ASSERT_OK(client_.Echo(1));
  EXPECT_LE(LeastSleeps(kMonitor), kFew);
  EXPECT_GT(SleepsOf(kMonitor), 0) << "there is no such thread";
}

}  // namespace
}  // namespace e2e
