// Goal: the spin is longer where that spares sleeping, and only there.
// Method: what drivers would say of their sleeps, with times of the test's own.
#include "rdma_transport/idle_spin.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rdma {
namespace {

constexpr int64_t kShortestNs = 50'000;
constexpr int64_t kLongestNs = 400'000;

class IdleSpinTest : public ::testing::Test {
 protected:
  void Wake(int times, int64_t idle_ns) {
    for (int i = 0; i < times; ++i) spin_.OnWoken(idle_ns);
  }

  IdleSpin spin_{absl::Nanoseconds(kShortestNs), absl::Nanoseconds(kLongestNs)};
};

TEST_F(IdleSpinTest, BeginsShort) { EXPECT_EQ(spin_.limit_ns(), kShortestNs); }

TEST_F(IdleSpinTest, OutlastsWorkThatComesSoonAfterSleepBegan) {
  constexpr int64_t kIdleNs = 190'000;
  Wake(2, kIdleNs);
  EXPECT_GT(spin_.limit_ns(), kIdleNs);
}

TEST_F(IdleSpinTest, NeverExceedsTheLongest) {
  Wake(100, kLongestNs);
  EXPECT_EQ(spin_.limit_ns(), kLongestNs);
}

TEST_F(IdleSpinTest, IsShortAgainOnceWorkComesLate) {
  Wake(100, kLongestNs);
  Wake(3, kLongestNs + 1);
  EXPECT_EQ(spin_.limit_ns(), kShortestNs);
}

TEST_F(IdleSpinTest, StaysShortWhereWorkIsRare) {
  Wake(100, 10 * kLongestNs);
  EXPECT_EQ(spin_.limit_ns(), kShortestNs);
}

TEST_F(IdleSpinTest, IsFixedWhereBothEndsAreTheSame) {
  IdleSpin fixed(absl::ZeroDuration(), absl::ZeroDuration());
  fixed.OnWoken(0);
  fixed.OnWoken(kLongestNs);
  EXPECT_EQ(fixed.limit_ns(), 0);
}

// Two sides of calls that come one after the other. Each is idle from when it
// has sent until what the other one answers is there.
struct Machine {
  int64_t way_ns;   // of a message, with what its receiver does
  int64_t wake_ns;  // after sleep
  // Of the client, before a call, and the next one, and so on.
  std::vector<int64_t> think_ns = {0};
  size_t hiccup_every = 0;  // calls
  int64_t hiccup_ns = 0;
};

class IdlePeers {
 public:
  explicit IdlePeers(Machine machine) : machine_(std::move(machine)) {}

  // How long each takes, on average.
  int64_t Call(int times) {
    const int64_t begin_ns = now_ns_;
    for (int i = 0; i < times; ++i) {
      Hear(server_, machine_.think_ns[calls_ % machine_.think_ns.size()]);
      ++calls_;
      const bool is_hiccup =
          machine_.hiccup_every != 0 && calls_ % machine_.hiccup_every == 0;
      Hear(client_, is_hiccup ? machine_.hiccup_ns : 0);
    }
    return (now_ns_ - begin_ns) / times;
  }

  // Of all time since this was asked, how much the server polled in vain.
  double server_spun() {
    const int64_t spun_ns = std::exchange(server_.spun_ns, 0);
    const int64_t since_ns = std::exchange(asked_ns_, now_ns_);
    return static_cast<double>(spun_ns) /
           static_cast<double>(now_ns_ - since_ns);
  }

  // The client has seen so many sleeps that the server has not.
  void WakeClient(int times, int64_t idle_ns) {
    for (int i = 0; i < times; ++i) client_.spin.OnWoken(idle_ns);
  }
  void set_machine(Machine machine) { machine_ = std::move(machine); }

 private:
  struct Peer {
    IdleSpin spin{absl::Nanoseconds(kShortestNs),
                  absl::Nanoseconds(kLongestNs)};
    int64_t idle_since_ns = 0;
    int64_t spun_ns = 0;
  };

  // The other one sends after a while.
  void Hear(Peer& peer, int64_t after_ns) {
    now_ns_ += after_ns + machine_.way_ns;
    const int64_t idle_ns = now_ns_ - peer.idle_since_ns;
    peer.spun_ns += std::min(idle_ns, peer.spin.limit_ns());
    if (idle_ns >= peer.spin.limit_ns()) {
      now_ns_ += machine_.wake_ns;
      peer.spin.OnWoken(idle_ns + machine_.wake_ns);
    } else if (peer.spin.listens()) {
      peer.spin.OnFound(idle_ns);
    }
    // It answers at once.
    peer.idle_since_ns = now_ns_;
  }

  Machine machine_;
  int64_t now_ns_ = 1;
  int64_t asked_ns_ = 0;
  size_t calls_ = 0;
  Peer client_;
  Peer server_;
};

// Asleep both, they take a millisecond, which no usual spin would outlast.
const Machine kSlowToWake = {.way_ns = 150'000, .wake_ns = 350'000};

TEST(IdlePeersTest, GetOutOfKeepingEachOtherAsleep) {
  IdlePeers peers(kSlowToWake);
  peers.Call(200);
  EXPECT_EQ(peers.Call(100), 2 * kSlowToWake.way_ns);
}

TEST(IdlePeersTest, NeedNotTryAtTheSameTime) {
  for (const int sleeps : {5, 12, 40, 10'000}) {
    IdlePeers peers(kSlowToWake);
    peers.WakeClient(sleeps, 1'000'000);
    peers.Call(2'500);
    EXPECT_EQ(peers.Call(100), 2 * kSlowToWake.way_ns) << sleeps;
  }
}

TEST(IdlePeersTest, ThatAreInterruptedStayAwake) {
  for (const int64_t hiccup_ns : {1'000'000, 2'000'000, 4'000'000}) {
    Machine machine = kSlowToWake;
    machine.hiccup_every = 20;
    machine.hiccup_ns = hiccup_ns;
    IdlePeers peers(machine);
    peers.Call(1'000);
    EXPECT_LT(peers.Call(1'000),
              2 * machine.way_ns + hiccup_ns / 20 + machine.wake_ns / 4)
        << hiccup_ns;
  }
}

TEST(IdlePeersTest, WhoseMessagesTakeLongerThanASpinStayAwakeToo) {
  const Machine far = {.way_ns = 250'000, .wake_ns = 700'000};
  IdlePeers peers(far);
  peers.Call(200);
  EXPECT_LT(peers.Call(10'000), 2 * far.way_ns + far.wake_ns / 10);
}

// It is not for sleeping that the next call is not there yet.
TEST(IdlePeersTest, DoNotSpinForCallsThatComeLate) {
  const std::vector<int64_t> patterns[] = {
      {500'000},
      {1'000'000},
      {3'000'000},
      // In bursts.
      {1'000'000, 1'000},
      {1'000'000, 1'000, 1'000},
      {1'000'000, 10'000, 20'000, 10'000},
      {450'000, 2'500'000},
      {450'000, 1'200'000, 2'500'000},
  };
  for (const std::vector<int64_t>& think_ns : patterns) {
    for (const int64_t wake_ns : {5'000, 50'000}) {
      IdlePeers peers(
          {.way_ns = 2'000, .wake_ns = wake_ns, .think_ns = think_ns});
      peers.Call(10'000);
      peers.server_spun();
      peers.Call(100'000);
      // Some of each pause, by the usual rule.
      EXPECT_LT(peers.server_spun(), 0.25)
          << think_ns[0] << " and " << think_ns.size() - 1 << " more, "
          << wake_ns;
    }
  }
}

// What was true of a machine need not stay so.
TEST(IdlePeersTest, StopSpinningWhereItIsOfNoUseAnyMore) {
  IdlePeers peers(kSlowToWake);
  peers.Call(200);
  peers.set_machine({.way_ns = 2'000, .wake_ns = 5'000, .think_ns = {600'000}});
  peers.Call(20'000);
  peers.server_spun();
  peers.Call(20'000);
  EXPECT_LT(peers.server_spun(), 0.12);
}

}  // namespace
}  // namespace rdma
