// Goal: channels with several addresses end whatever else the threads of the
// executor for callbacks have to do.
// Method: as many end on these threads as there are, all at the same time.
#include <memory>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/internal/executor.h"
#include "rpc/transport.h"
#include "tests/rpc/routing/fake_transports.h"

namespace rpc::routing {
namespace {

using internal::Executor;

constexpr int kThreads = Executor::kDefaultMaxThreads;

// What the ends have in common.
struct Ends {
  absl::BlockingCounter begun{kThreads};
  absl::Notification go_on;
  absl::BlockingCounter ended{kThreads};
};

class End final : public Executor::Task {
 public:
  End(std::unique_ptr<ClientTransport> transport, Ends* ends)
      : transport_(std::move(transport)), ends_(*ends) {}

  void RunTask() override {
    ends_.begun.DecrementCount();
    ends_.go_on.WaitForNotification();
    transport_.reset();
    ends_.ended.DecrementCount();
    delete this;
  }

 private:
  std::unique_ptr<ClientTransport> transport_;
  Ends& ends_;
};

class RoutingEndTest : public ::testing::Test {
 protected:
  // All threads of the executor have a channel to end.
  RoutingEndTest() : fakes_(2) {
    // ThreadSanitizer does not see the lock within Abseil's search for
    // deadlocks, which hears of each mutex that goes.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    for (int i = 0; i < kThreads; ++i) {
      EXPECT_TRUE(
          Executor::ForCallbacks().Post(new End(fakes_.Route(), &ends_)));
    }
    ends_.begun.Wait();
  }
  void EndAll() {
    ends_.go_on.Notify();
    ends_.ended.Wait();
    EXPECT_EQ(fakes_[0].clients(), 0);
  }

  FakeTransports fakes_;
  Ends ends_;
};

TEST_F(RoutingEndTest, NoneNeedsAnotherThread) { EndAll(); }

TEST_F(RoutingEndTest, NorWhereATransportHasJustToldSomething) {
  fakes_[0].SetState(ConnectivityState::kReady);
  EndAll();
}

}  // namespace
}  // namespace rpc::routing
