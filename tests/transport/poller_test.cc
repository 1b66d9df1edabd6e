// Goal: the thread that waits for something is the one that drives.
// Method: a poller whose keeper never sleeps, and a timer, which fires on the
// thread that drives.
#include "rdma_transport/poller.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "rpc/transport.h"
#include "tests/transport/connection_side.h"

namespace rdma {
namespace {

constexpr int64_t kMillisecondNs = 1'000'000;
constexpr int64_t kGiveUpNs = 20'000 * kMillisecondNs;

// Fires each millisecond until it does so on the thread that made it, or until
// it has had enough; then it sets the event.
class ThreadFinder final : public Timer {
 public:
  ThreadFinder(Poller* poller, rpc::Event* event)
      : poller_(*poller), event_(*event) {}

  bool fired_here() const { return fired_here_; }
  // Any thread.
  bool fired_elsewhere() const { return fired_elsewhere_; }
  void ScheduleNext() {
    poller_.Schedule(this, Poller::NowNs() + kMillisecondNs);
  }

 private:
  void OnTimer() override {
    fired_here_ = std::this_thread::get_id() == thread_;
    if (!fired_here_) fired_elsewhere_ = true;
    if (fired_here_ || Poller::NowNs() > give_up_ns_) {
      poller_.SetEvent(event_);
    } else {
      ScheduleNext();
    }
  }

  Poller& poller_;
  rpc::Event& event_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const int64_t give_up_ns_ = Poller::NowNs() + kGiveUpNs;
  bool fired_here_ = false;
  std::atomic<bool> fired_elsewhere_{false};
};

class PollerTest : public ::testing::Test {
 protected:
  // Waits for something while the keeper drives, on this thread.
  static void WaitInPlaceOfTheKeeper(testing::Side& side) {
    rpc::Event event;
    ThreadFinder finder(&side.poller(), &event);
    side.Do([&finder] { finder.ScheduleNext(); });
    ASSERT_TRUE(testing::Eventually([&] { return finder.fired_elsewhere(); }));
    side.poller().Wait(event);
    EXPECT_TRUE(finder.fired_here());
  }
};

TEST_F(PollerTest, AKeeperGivesWayToAThreadThatWaits) {
  testing::Side side({.spin = absl::Hours(1)});
  WaitInPlaceOfTheKeeper(side);
}

TEST_F(PollerTest, AKeeperDrivesAgainWhenNobodyWaits) {
  testing::Side side({.spin = absl::Hours(1)});
  for (int i = 0; i < 3; ++i) WaitInPlaceOfTheKeeper(side);
}

}  // namespace
}  // namespace rdma
